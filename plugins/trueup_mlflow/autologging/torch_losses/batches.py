"""What one call of a torch loss says of a batch, read without waiting for the device.

Tensors are cloned where they lie, since the caller may go on to change its own, and come to the
CPU only when a logged number is looked up. A loop calls this once a batch: it must cost next to
nothing, so that all arithmetic waits until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.autologging.scored import on_cpu, snapshot

Arguments = Mapping[str, Any]
_PLAIN: Mapping[str, object] = {
    "weight": None,
    "pos_weight": None,
    "size_average": None,
    "reduce": None,
    "label_smoothing": 0.0,
}
"""Options of losses with the values that leave the mean over the rows what it is."""
_OVERHEAD = 2048  # bytes of the objects around three small tensors


@dataclass(frozen=True)
class Reading:
    """What the arguments of a call are to trueup, or why they can have no calibrated twin."""

    loss: str
    are_logits: bool = False
    refusal: str | None = None


@dataclass(eq=False)  # not frozen, which takes three times as long to make
class Batch:
    """One call of a loss."""

    reading: Reading  # what was computed
    value: Any  # what the call returned: a mean, a sum, or one loss a row
    # what it was computed from; empty where there is a refusal
    y_true: Any
    y_pred: Any
    rows: int  # number of rows
    reduction: str  # {"mean", "sum", "none"}: what ``value`` is

    @property
    def kind(self) -> tuple[object, ...]:
        """What the batches of one section have in common."""
        shape = self.y_pred.shape[1:] if self.y_pred.ndim > 1 else ()
        return (
            self.reading.loss,
            self.reading.are_logits,
            self.reading.refusal,
            self.reduction,
            shape,
        )

    @property
    def nbytes(self) -> int:
        return int(_OVERHEAD + self.value.nbytes + self.y_true.nbytes + self.y_pred.nbytes)

    @cached_property
    def losses(self) -> NDArray[Any]:
        """What the call returned, as an array in its own precision."""
        return on_cpu(self.value).reshape(-1)

    @cached_property
    def total(self) -> np.floating | None:
        """The sum over the rows in the precision of the losses, where the loop had it."""
        if self.reduction == "mean":
            return None
        dtype: type[np.floating] = self.losses.dtype.type
        return dtype(self.value.sum().item())

    @cached_property
    def means(self) -> tuple[float, ...]:
        """What a loop may take for the mean over the rows: they differ by their rounding."""
        total = self.total
        if total is None:
            return (float(self.losses[0]),)
        in_float64 = float(total) / self.rows
        if self.reduction == "sum":
            return in_float64, float(total / total.dtype.type(self.rows))
        return in_float64, self.value.mean().item()

    @cached_property
    def digest(self) -> bytes:
        """What tells the batch from others: labels, predictions and losses."""
        content = blake2b(self.losses.tobytes(), digest_size=16)
        for tensor in (self.y_true, self.y_pred):
            content.update(snapshot(tensor.reshape(-1)).tobytes())
        return content.digest()


def refuse_classes(arguments: Arguments) -> str | None:
    """Return why ``cross_entropy`` or ``nll_loss`` is not one of a label a row."""
    if arguments["target"].is_floating_point():
        return "the targets are probabilities, not classes"
    if arguments["input"].ndim != 2:
        return "the loss is one of several labels a row (pixels or tokens)"
    return None


def refuse_rows(arguments: Arguments) -> str | None:
    """Return why predictions and targets are not one number a row each."""
    shape = arguments["input"].shape
    if shape != arguments["target"].shape:
        return (
            "predictions and targets have different shapes, so that torch sets each against all: "
            "give them one shape, as by .squeeze(1)"
        )
    if len(shape) > 1 and shape.numel() != shape[0]:
        return "the loss is a mean over several outputs a row: log each with a prefix of its own"
    return None


READERS: Mapping[str, tuple[Reading, Callable[[Arguments], str | None]]] = {
    "cross_entropy": (Reading("log_loss", are_logits=True), refuse_classes),
    "nll_loss": (Reading("log_loss", are_logits=True), refuse_classes),
    "binary_cross_entropy_with_logits": (Reading("log_loss", are_logits=True), refuse_rows),
    "binary_cross_entropy": (Reading("log_loss"), refuse_rows),
    "mse_loss": (Reading("mean_squared_error"), refuse_rows),
}
"""The functions of ``torch.nn.functional`` that are watched, and what each refuses."""


def read_batch(name: str, arguments: Arguments, value: Any) -> Batch:
    """Return what a call of one of ``READERS`` says, and its value, which has no gradient."""
    reading, refuse = READERS[name]
    y_true, y_pred = arguments["target"], arguments["input"]
    rows = y_true.shape[0] if y_true.ndim else 1
    refusal = _refuse_options(arguments) or refuse(arguments)
    if refusal is not None:  # its number can be recognised, and the reason told
        reading = _refused(reading, refusal)
        y_true = y_pred = value.new_empty(0)
    reduction = arguments.get("reduction", "mean")
    return Batch(reading, value.clone(), y_true.clone(), y_pred.clone(), rows, reduction)


def fetch_losses(batches: Sequence[Batch]) -> None:
    """Bring the losses of batches to the CPU at once: each alone would wait for the device."""
    import torch

    waiting = [one for one in batches if one.reduction == "mean" and "means" not in vars(one)]
    if len({(one.value.dtype, one.value.device) for one in waiting}) == 1:
        fetched = on_cpu(torch.stack([one.value for one in waiting]))
        for index, (one, mean) in enumerate(zip(waiting, fetched.tolist(), strict=True)):
            one.losses, one.means = fetched[index : index + 1], (mean,)


def is_among(batch: Batch, others: Sequence[Batch]) -> bool:
    """Return whether a batch is one of others; losses tell most apart."""
    return any(batch.means == other.means and batch.digest == other.digest for other in others)


def period_of(batches: Sequence[Batch]) -> int:
    """Return after how many batches the same ones come again; their number where they do not."""
    for period in range(1, len(batches)):
        if all(is_among(batches[i], [batches[i - period]]) for i in range(period, len(batches))):
            return period
    return len(batches)


@cache  # one object for each reason: a set of a few sentences
def _refused(reading: Reading, refusal: str) -> Reading:
    return Reading(reading.loss, reading.are_logits, refusal)


def _refuse_options(arguments: Arguments) -> str | None:
    """Return which options make the loss another one than the mean over the rows."""
    options = [
        option
        for option, value in arguments.items()
        if option in _PLAIN and value is not _PLAIN[option] and value != _PLAIN[option]
    ]
    if not options:
        return None
    row_weights = not {"weight", "pos_weight"}.isdisjoint(options)
    mend = ", which log_evaluation takes as sample_weight, one a row" if row_weights else ""
    return f"the loss is computed with {' and '.join(options)}{mend}"
