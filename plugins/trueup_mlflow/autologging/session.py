"""Autologging as it is switched on and off: one session in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from trueup_mlflow.autologging.calibrated_metrics import TwinMaker, TwinOptions
from trueup_mlflow.autologging.client_hook import hook_client
from trueup_mlflow.autologging.recent import Match, RecentScores
from trueup_mlflow.autologging.scored import Scored
from trueup_mlflow.autologging.sklearn_hook import READERS, hook_module
from trueup_mlflow.write.failures import describe, warn

if TYPE_CHECKING:
    from trueup_mlflow.autologging.torch_hook import Loops

Undo = Callable[[], None]


class Session:
    """The hooks that are on, and how to take them off.

    Parameters
    ----------
    options : TwinOptions
        How to evaluate.
    """

    def __init__(self, options: TwinOptions) -> None:
        self.recent = RecentScores()
        self.loops: Loops | None = None
        self._maker = TwinMaker(self.find, options)
        self._undo: dict[str, Undo] = {}
        self._closed = False
        self._warned = False
        self._lock = threading.RLock()

    def hook_sklearn(self, module: ModuleType) -> None:
        """Watch the metric functions of a module of scikit-learn."""
        with self._lock:
            if self._closed or module.__name__ in self._undo:
                return
            try:
                self._undo[module.__name__] = hook_module(module, self.record, self.warn_once)
            except Exception as failure:  # scikit-learn has changed inside
                self.warn_once(failure)

    def hook_torch(self, module: ModuleType) -> None:
        """Watch the losses of ``torch.nn.functional``."""
        from trueup_mlflow.autologging.torch_hook import Loops, hook_functional

        with self._lock:
            if self._closed or module.__name__ in self._undo:
                return
            try:
                loops = Loops()
                self._undo[module.__name__] = hook_functional(module, loops, self.warn_once)
                self.loops = loops
            except Exception as failure:  # torch has changed inside
                self.warn_once(failure)
            self.hook_mlflow()

    def hook_mlflow(self) -> None:
        """Put twins into the requests of the MLflow client."""
        with self._lock:
            if not self._closed and "mlflow" not in self._undo:
                self._undo["mlflow"] = hook_client(self._maker)

    def record(self, scored: Scored) -> None:
        """Keep what a metric function scored, for when its number is logged."""
        self.recent.record(scored)
        self.hook_mlflow()

    def find(self, value: object) -> Match | None:
        """Return what a logged number was computed from, if that is known."""
        if self._closed:
            return None
        match = self.recent.find(value)
        if match is None and self.loops is not None:
            return self.loops.find(value)
        return match

    def warn_once(self, failure: Exception) -> None:
        """Warn of the first failure; the user's own calls are not affected."""
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warn(f"autologging leaves out some metrics: {describe(failure)}")

    def close(self) -> None:
        """Take all hooks off."""
        with self._lock:
            self._closed = True
            while self._undo:
                self._undo.popitem()[1]()


_current: Session | None = None
_lock = threading.Lock()


def start(
    options: TwinOptions | None = None, *, torch: bool = False, while_mlflow_loads: bool = False
) -> None:
    """Switch autologging on, in place of what was on before.

    Parameters
    ----------
    options : TwinOptions, optional
        How to evaluate.
    torch : bool, default False
        Whether to hook the losses of ``torch.nn.functional`` as well.
    while_mlflow_loads : bool, default False
        Whether ``import mlflow`` is still running; the client is then hooked later.
    """
    from mlflow.utils.import_hooks import register_post_import_hook

    global _current
    session = Session(options or TwinOptions())
    with _lock:
        if _current is not None:
            _current.close()
        _current = session
    for name in READERS:
        register_post_import_hook(session.hook_sklearn, name, overwrite=False)
    if torch:
        register_post_import_hook(session.hook_torch, "torch.nn.functional", overwrite=False)
    if not while_mlflow_loads:
        session.hook_mlflow()


def stop() -> None:
    """Switch autologging off; without effect where it is off."""
    global _current
    with _lock:
        if _current is not None:
            _current.close()
        _current = None
