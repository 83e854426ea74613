"""The opt-in hook for validation loops of plain PyTorch.

A loop adds up the losses of batches and logs a mean that no function has returned. So each loss
computed without gradients is kept with its batch, and a logged number is compared with the means
over the batches of the latest loops.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.autologging.recent import Entry, Match
from trueup_mlflow.autologging.scored import Scored, snapshot

Arguments = Mapping[str, Any]
_TOLERANCE = 1e-5  # a user's sum of float32 losses is off by about 1e-6
_MAX_SECTIONS = 16
_MAX_BYTES = 2**28
_PLAIN: Mapping[str, object] = {
    "weight": None,
    "pos_weight": None,
    "size_average": None,
    "reduce": None,
    "label_smoothing": 0.0,
}
"""Options of losses with the values that leave the mean over the rows what it is."""


@dataclass(frozen=True)
class Batch:
    """One loss of one batch: its mean over the rows, and what it was computed from."""

    loss: str
    mean: float
    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    are_logits: bool


class Loop:
    """The losses of one validation loop, in sections: one for each time gradients went off."""

    def __init__(self) -> None:
        self._sections: list[list[Batch]] = []
        self.nbytes = 0

    def add(self, batch: Batch, *, new_section: bool) -> None:
        """Append a batch; beyond 256 MiB the loop is emptied, and recognises nothing."""
        if new_section or not self._sections:
            self._sections.append([])
        self.nbytes += batch.y_true.nbytes + batch.y_pred.nbytes
        self._sections[-1].append(batch)
        if self.nbytes > _MAX_BYTES:
            self._sections = [[]]

    def find(self, number: float) -> Match | None:
        """Return the batches whose mean, or root of the mean, the number is."""
        for batches in self._candidates():
            means = np.array([batch.mean for batch in batches])
            rows = np.array([len(batch.y_true) for batch in batches])
            by_row = float(means @ rows / rows.sum())
            for mean in (by_row, float(means.mean())):
                if _close(number, mean):
                    return Match(Entry(_joined(batches, by_row)))
                if batches[0].loss == "mean_squared_error" and _close(number * number, mean):
                    return Match(Entry(_joined(batches, by_row)), root=True)
        return None

    def _candidates(self) -> Iterator[Sequence[Batch]]:
        everything = [batch for section in self._sections for batch in section]
        for batches in (everything, *self._sections[:-_MAX_SECTIONS:-1]):
            if len({(batch.loss, batch.are_logits) for batch in batches}) == 1:
                yield batches


class Loops:
    """The latest validation loops; a loss with gradients, as in training, ends one."""

    def __init__(self) -> None:
        self._loops: deque[Loop] = deque([Loop()], maxlen=4)
        self._matches: deque[tuple[float, Match]] = deque(maxlen=16)
        self._in_new_section = True
        self._trains = False
        self._lock = threading.Lock()

    def add(self, batch: Batch) -> None:
        """Append a batch to the current loop."""
        with self._lock:
            if self._trains:
                self._loops.append(Loop())
            self._loops[-1].add(batch, new_section=self._in_new_section)
            self._trains = self._in_new_section = False

    def train(self) -> None:
        """Note that a loss was computed with gradients."""
        self._trains = True

    def start_section(self) -> None:
        """Note that gradients are being switched off."""
        self._in_new_section = True

    def find(self, value: object) -> Match | None:
        """Return what a logged number was computed from, if that is known."""
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
        with self._lock:
            for known, match in self._matches:
                if known == number:
                    return match
            for loop in reversed(self._loops):
                found = loop.find(number)
                if found is not None:
                    self._matches.append((number, found))
                    return found
        return None


def hook_functional(
    functional: ModuleType, loops: Loops, on_failure: Callable[[Exception], None]
) -> Callable[[], None]:
    """Replace the losses of ``torch.nn.functional``, which those of ``torch.nn`` call.

    Parameters
    ----------
    functional : module
        ``torch.nn.functional``.
    loops : Loops
        Takes the batches.
    on_failure : callable
        Takes what went wrong in reading a call; the call itself goes on.

    Returns
    -------
    callable
        Takes the hooks off again.
    """
    import torch

    places: list[tuple[Any, str, Callable[..., Any]]] = [
        (functional, name, _watched(getattr(functional, name), reader, loops, on_failure))
        for name, reader in READERS.items()
    ]
    for switch in (torch.no_grad, torch.inference_mode):
        places.append((switch, "__enter__", _announced(switch.__enter__, loops)))
    originals = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, hooked in places:
        setattr(owner, name, hooked)

    def unhook() -> None:
        for (owner, name, _), original in zip(places, originals, strict=True):
            setattr(owner, name, original)

    return unhook


def read_class_loss(arguments: Arguments, mean: float) -> Batch | None:
    """Return what ``cross_entropy`` or ``nll_loss`` was called with, for class indices only."""
    logits, target = arguments["input"], arguments["target"]
    if logits.ndim != 2 or target.ndim != 1 or target.is_floating_point():
        return None
    margin = snapshot(logits)
    if margin.ndim == 2 and margin.shape[1] == 2:
        margin = margin[:, 1].astype(np.float64) - margin[:, 0]
    return Batch("log_loss", mean, snapshot(target), margin, are_logits=True)


def read_logit_loss(arguments: Arguments, mean: float) -> Batch | None:
    """Return what ``binary_cross_entropy_with_logits`` was called with."""
    return _row_by_row("log_loss", arguments, mean, are_logits=True)


def read_probability_loss(arguments: Arguments, mean: float) -> Batch | None:
    """Return what ``binary_cross_entropy`` was called with."""
    return _row_by_row("log_loss", arguments, mean)


def read_squared_error(arguments: Arguments, mean: float) -> Batch | None:
    """Return what ``mse_loss`` was called with."""
    return _row_by_row("mean_squared_error", arguments, mean)


READERS: Mapping[str, Callable[[Arguments, float], Batch | None]] = {
    "cross_entropy": read_class_loss,
    "nll_loss": read_class_loss,
    "binary_cross_entropy_with_logits": read_logit_loss,
    "binary_cross_entropy": read_probability_loss,
    "mse_loss": read_squared_error,
}
"""The functions that are hooked."""


def _row_by_row(
    loss: str, arguments: Arguments, mean: float, *, are_logits: bool = False
) -> Batch | None:
    prediction, target = arguments["input"], arguments["target"]
    if prediction.shape != target.shape or prediction.numel() != len(prediction):
        return None
    flat = prediction.reshape(-1), target.reshape(-1)
    return Batch(loss, mean, snapshot(flat[1]), snapshot(flat[0]), are_logits=are_logits)


def _watched(
    function: Callable[..., Any],
    reader: Callable[[Arguments, float], Batch | None],
    loops: Loops,
    on_failure: Callable[[Exception], None],
) -> Callable[..., Any]:
    import torch

    signature = inspect.signature(function)

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        if torch.compiler.is_compiling():
            return value
        if torch.is_grad_enabled():
            loops.train()
            return value
        try:
            arguments = signature.bind(*args, **kwargs).arguments
            if _is_plain(arguments):
                batch = reader(arguments, _row_mean(arguments, float(value)))
                if batch is not None:
                    loops.add(batch)
        except Exception as failure:  # the user's loss has been computed and is returned
            on_failure(failure)
        return value

    # torch.jit.script, which cannot compile a wrapper, asks this for what to compile.
    watched.__prepare_scriptable__ = lambda: function  # type: ignore[attr-defined]
    return watched


def _announced(enter: Callable[[Any], None], loops: Loops) -> Callable[[Any], None]:
    import torch

    @functools.wraps(enter)
    def announced(self: Any) -> None:
        if torch.is_grad_enabled():
            loops.start_section()
        enter(self)

    return announced


def _is_plain(arguments: Arguments) -> bool:
    options = all(arguments.get(name, plain) == plain for name, plain in _PLAIN.items())
    return options and arguments.get("reduction", "mean") in ("mean", "sum")


def _row_mean(arguments: Arguments, value: float) -> float:
    is_sum = arguments.get("reduction", "mean") == "sum"
    return value / len(arguments["target"]) if is_sum else value


def _joined(batches: Sequence[Batch], mean: float) -> Scored:
    y_pred = np.concatenate([batch.y_pred for batch in batches])
    loss = batches[0].loss
    n_classes = y_pred.shape[1] if y_pred.ndim == 2 else 2
    return Scored(
        loss=loss,
        value=mean,
        y_true=np.concatenate([batch.y_true for batch in batches]),
        y_pred=y_pred,
        labels=None if loss == "mean_squared_error" else tuple(range(n_classes)),
        are_logits=batches[0].are_logits,
    )


def _close(number: float, mean: float) -> bool:
    return math.isclose(number, mean, rel_tol=_TOLERANCE)
