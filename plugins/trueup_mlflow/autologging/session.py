"""Autologging as it is switched on and off: one session in a process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from trueup import Split
from trueup.extras import needed_by
from trueup_mlflow.autologging.calibrated_metrics import TwinMaker, TwinOptions
from trueup_mlflow.autologging.client_hook import hook_client
from trueup_mlflow.autologging.coverage import (
    FLOAT32,
    IN_TRAINING,
    NEAR,
    NOT_COVERED,
    OF_PROCESSES,
    SHORT,
    TRAINING_TOO,
    UNKNOWN,
    UNSEEN,
    explain,
)
from trueup_mlflow.autologging.recent import Match, RecentScores, is_telling, number_of
from trueup_mlflow.autologging.scored import Scored
from trueup_mlflow.autologging.sklearn_hook import READERS, hook_module
from trueup_mlflow.autologging.torch_losses.passes import TOO_LARGE, Passes
from trueup_mlflow.write.failures import describe, warn

Undo = Callable[[], object]
_DEFAULT = TwinOptions()
_AFTER_THE_CLIENT = "mlflow.tracking.fluent"  # which imports the client


class Session:
    """The hooks that are on, and how to take them off."""

    def __init__(self, options: TwinOptions) -> None:
        self.recent = RecentScores()
        self.passes = Passes(self.hook_mlflow)
        self._maker = TwinMaker(self.find, options, self.explain)
        self._undo: dict[str, Undo] = {}
        self._cross_validated = ""
        self._closed = False
        self._warned = False
        self._lock = threading.RLock()

    def hook_sklearn(self, module: ModuleType) -> None:
        """Watch the metric functions of a module of scikit-learn."""
        self._hook(module.__name__, lambda: hook_module(module, self.record, self.warn_once))

    def hook_torch(self, module: ModuleType) -> None:
        """Watch the losses of torch, and where its validation passes begin."""
        from trueup_mlflow.autologging.torch_losses.hook import hook_functional, hook_switches

        functional = module.nn.functional
        self._hook("torch losses", lambda: hook_functional(functional, self.passes, self.warn_once))
        self._hook("torch switches", lambda: hook_switches(module, self.passes))

    def hook_torchmetrics(self, module: ModuleType) -> None:
        """Watch the squared error of torchmetrics."""
        from trueup_mlflow.autologging.torch_losses.torchmetrics_hook import hook_torchmetrics

        self._hook(module.__name__, lambda: hook_torchmetrics(module, self.record))

    def hook_booster(self, module: ModuleType) -> None:
        """Watch the metrics of the trainings of XGBoost or LightGBM."""
        from trueup_mlflow.autologging.booster_hooks import hook_cv, hook_lightgbm, hook_xgboost

        hook = {"xgboost": hook_xgboost, "lightgbm": hook_lightgbm}[module.__name__]
        self._hook(module.__name__, lambda: hook(module, self.record, self.warn_once))
        self._hook(f"{module.__name__}.cv", lambda: hook_cv(module, self._cross_validates))

    def hook_mlflow(self, _module: ModuleType | None = None) -> None:
        """Put twins into the requests of the MLflow client, once that is there."""
        client = sys.modules.get("mlflow.tracking.client")
        if client is None or hasattr(client, "MlflowClient"):  # else `import mlflow` has yet to end
            self._hook("mlflow", lambda: hook_client(self._maker))

    def record(self, scored: Scored) -> None:
        """Keep what a metric function scored, for when its number is logged."""
        self.recent.record(scored)
        self.hook_mlflow()

    def find(self, value: object) -> Match | None:
        """Return what a logged number was computed from, if that is known."""
        if self._closed:
            return None
        return self.recent.find(value) or self.passes.find(value)

    def explain(self, value: object) -> str:
        """Return why a logged number was not recognised."""
        number = number_of(value)
        seen = [*self.recent.numbers(), *self.passes.numbers()]
        trained = self.passes.saw_training
        if number is None or not seen:
            reason = IN_TRAINING if trained else UNSEEN
        else:
            reason = explain(number, seen)
        if self._cross_validated and reason in (UNKNOWN, UNSEEN):
            not_covered = NOT_COVERED.format(self._cross_validated)
            return not_covered if reason == UNSEEN else f"{not_covered}; else {reason}"
        if reason == UNKNOWN and number is not None and not is_telling(number):
            return SHORT
        if reason == UNKNOWN and trained:
            reason += TRAINING_TOO
        if _is_one_of_several():
            if reason == FLOAT32:  # as a mean over processes is that happens to be as near
                reason = NEAR
            if reason.startswith((UNKNOWN, NEAR)):
                reason += OF_PROCESSES
        return f"{reason}; {TOO_LARGE}" if self.passes.dropped else reason

    def _cross_validates(self, name: str) -> None:
        self._cross_validated = name

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

    def _hook(self, name: str, hook: Callable[[], Undo]) -> None:
        with self._lock:
            if self._closed or name in self._undo:
                return
            try:
                self._undo[name] = hook()
            except Exception as failure:  # the other package has changed inside
                self.warn_once(failure)


_current: Session | None = None
_lock = threading.Lock()


def start(
    options: TwinOptions | None = None, *, torch: bool = True, while_mlflow_loads: bool = False
) -> None:
    """Switch autologging on, in place of what was on before.

    While ``import mlflow`` is still running, the client is hooked later.
    """
    from mlflow.utils.import_hooks import register_post_import_hook

    global _current
    session = Session(options or TwinOptions())
    with _lock:
        if _current is not None:
            _current.close()
        _current = session
    hooks: dict[str, Callable[[ModuleType], None]] = dict.fromkeys(READERS, session.hook_sklearn)
    hooks |= dict.fromkeys(("xgboost", "lightgbm"), session.hook_booster)
    if torch:
        hooks |= {"torch": session.hook_torch, "torchmetrics": session.hook_torchmetrics}
    if while_mlflow_loads:
        hooks[_AFTER_THE_CLIENT] = session.hook_mlflow
    for name, hook in hooks.items():
        register_post_import_hook(_harmless(hook), name, overwrite=False)
    if not while_mlflow_loads:
        session.hook_mlflow()


def _is_one_of_several() -> bool:
    """Return whether the process trains together with others."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return False
    return bool(distributed.is_initialized() and distributed.get_world_size() > 1)


def _harmless(hook: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """Return a hook whose failure does not end the import that it follows."""

    def harmless(module: ModuleType) -> None:
        with suppress(Exception):
            hook(module)

    return harmless


def stop() -> None:
    """Switch autologging off; without effect where it is off."""
    global _current
    with _lock:
        if _current is not None:
            _current.close()
        _current = None


def autolog(
    *,
    disable: bool = False,
    split: Split = _DEFAULT.split,
    torch: bool = True,
    exclude: tuple[str, ...] = _DEFAULT.exclude,
) -> None:
    """Log the calibrated metric beside each loss of scikit-learn, torch, torchmetrics and boosters.

    Parameters
    ----------
    disable : bool, default False
        Switch autologging off and take every hook off.
    split : Split, default CrossFit(5)
        Which rows fit the bias and which are scored; a row is identified by its position.
    torch : bool, default True
        Watch the losses of torch, for what validation loops make of them.
    exclude : tuple of str, default ("training_", "system/")
        Metrics whose keys start like this gain nothing.

    Notes
    -----
    ``log_loss``, ``brier_score_loss``, ``mean_squared_error`` and ``root_mean_squared_error`` of
    scikit-learn are watched, through whatever name they are called, and ``cross_entropy``,
    ``nll_loss``, ``binary_cross_entropy``, ``binary_cross_entropy_with_logits`` and ``mse_loss`` of
    torch with the modules of these losses, where no gradients are computed. When a number that one
    of them returned (or the root of a squared error, or the mean of the batches of a validation
    pass) is logged as ``K``, ``calibrated_K``, ``bias_term_K`` and ``bias_cost_K`` go into the same
    request, with the same run, step, timestamp, model and data set, and the run gains the tags
    ``trueup.split``, ``trueup.fingerprint.K`` and ``trueup.version``. ``K`` itself is not touched.
    Where there is no calibrated value, the tag ``trueup.skipped.K`` holds the reason.

    At the end of a run one line on stderr and the tag ``trueup.coverage`` say which metrics have
    twins, which have none and why; ``trueup doctor RUN_ID`` prints it later.

    Recognised is the number itself: not after rounding, not ``1 - value``, not the mean of several
    folds. ``log_evaluation`` has no such limits. Numbers of at most four significant digits are
    left alone, because another metric may have the same value.

    The evaluation happens when the number is logged. Until then the labels and predictions of the
    latest calls are kept, up to 256 MiB of them, and as much for torch.

    Examples
    --------
    >>> import mlflow
    >>> from sklearn.metrics import log_loss
    >>> from trueup_mlflow import autolog
    >>> autolog()
    >>> with mlflow.start_run() as run:
    ...     mlflow.log_metric("loss", log_loss([0, 1] * 50, [0.3, 0.8] * 50))
    >>> autolog(disable=True)
    >>> sorted(mlflow.get_run(run.info.run_id).data.metrics)
    ['bias_cost_loss', 'bias_term_loss', 'calibrated_loss', 'loss']
    """
    with needed_by("autolog"):
        import_module("mlflow")
    if disable:
        stop()
    else:
        start(TwinOptions(split=split, exclude=tuple(exclude)), torch=torch)
