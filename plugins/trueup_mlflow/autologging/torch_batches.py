"""What one call of a torch loss says of a batch, read without waiting for the device.

Tensors are cloned where they lie, since the caller may go on to change its own, and come to the
CPU only when a logged number is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.autologging.scored import snapshot

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
    """What the arguments of a call are to trueup.

    Attributes
    ----------
    loss : str
        A loss of :func:`trueup.evaluate`.
    are_logits : bool
        Whether the predictions are logits.
    refusal : str, optional
        Why a number of these calls can have no calibrated twin.
    """

    loss: str
    are_logits: bool = False
    refusal: str | None = None


@dataclass(frozen=True)
class Batch:
    """One call of a loss.

    Attributes
    ----------
    reading : Reading
        What was computed.
    value : tensor
        What the call returned: a mean, a sum, or one loss a row.
    y_true, y_pred : tensor
        What it was computed from.
    rows : int
        Number of rows.
    reduction : {"mean", "sum", "none"}
        What ``value`` is.
    """

    reading: Reading
    value: Any
    y_true: Any
    y_pred: Any
    rows: int
    reduction: str

    @cached_property
    def nbytes(self) -> int:
        """Memory that the batch holds, in bytes."""
        tensors = (self.value, self.y_true, self.y_pred)
        return _OVERHEAD + sum(int(tensor.nbytes) for tensor in tensors)

    @cached_property
    def losses(self) -> NDArray[Any]:
        """What the call returned, as an array in its own precision."""
        value = self.value.detach().cpu()
        low = value.is_floating_point() and value.element_size() < 4  # numpy has no bfloat16
        return np.asarray((value.float() if low else value).numpy()).reshape(-1)

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

    def labels(self) -> NDArray[Any]:
        """Return the labels or targets."""
        return snapshot(self.y_true.reshape(-1))

    def predictions(self) -> NDArray[Any]:
        """Return predictions or logits; two classes become the logit of the second."""
        if self.y_pred.ndim == 1 or self.y_true.numel() == self.y_pred.numel():
            return snapshot(self.y_pred.reshape(-1))
        logits = snapshot(self.y_pred)
        if logits.ndim == 2 and logits.shape[1] == 2:
            return np.asarray(logits[:, 1].astype(np.float64) - logits[:, 0])
        return logits


def read_class_loss(arguments: Arguments) -> Reading:
    """Read ``cross_entropy`` or ``nll_loss``."""
    logits, target = arguments["input"], arguments["target"]
    refusal = None
    if target.is_floating_point():
        refusal = "the targets are probabilities, not classes"
    elif logits.ndim != 2:
        refusal = "the loss is one of several labels a row (pixels or tokens)"
    return Reading("log_loss", are_logits=True, refusal=refusal)


def read_logit_loss(arguments: Arguments) -> Reading:
    """Read ``binary_cross_entropy_with_logits``."""
    return Reading("log_loss", are_logits=True, refusal=_of_row_by_row(arguments))


def read_probability_loss(arguments: Arguments) -> Reading:
    """Read ``binary_cross_entropy``."""
    return Reading("log_loss", refusal=_of_row_by_row(arguments))


def read_squared_error(arguments: Arguments) -> Reading:
    """Read ``mse_loss``."""
    return Reading("mean_squared_error", refusal=_of_row_by_row(arguments))


READERS: Mapping[str, Callable[[Arguments], Reading]] = {
    "cross_entropy": read_class_loss,
    "nll_loss": read_class_loss,
    "binary_cross_entropy_with_logits": read_logit_loss,
    "binary_cross_entropy": read_probability_loss,
    "mse_loss": read_squared_error,
}
"""The functions of ``torch.nn.functional`` that are watched."""


def read_batch(name: str, arguments: Arguments, value: Any) -> Batch:
    """Return what a call of one of ``READERS`` says.

    Parameters
    ----------
    name : str
        The function.
    arguments : mapping
        What it was called with.
    value : tensor
        What it returned, without a gradient.
    """
    reading = READERS[name](arguments)
    options = [option for option, plain in _PLAIN.items() if arguments.get(option, plain) != plain]
    if options:
        reading = Reading(
            reading.loss, reading.are_logits, f"the loss is computed with {' and '.join(options)}"
        )
    target = arguments["target"]
    seen = [target, arguments["input"]]
    if reading.refusal:  # its number can be recognised, and the reason told
        seen = [value.new_empty(0)] * 2
    return Batch(
        reading=reading,
        value=value.clone(),
        y_true=seen[0].clone(),
        y_pred=seen[1].clone(),
        rows=len(target) if target.ndim else 1,
        reduction=arguments.get("reduction", "mean"),
    )


def is_among(batch: Batch, others: Sequence[Batch]) -> bool:
    """Return whether a batch is one of others; most are told apart by their losses alone."""
    return any(batch.means == other.means and batch.digest == other.digest for other in others)


def period_of(batches: Sequence[Batch]) -> int:
    """Return after how many batches the same ones come again; their number where they do not."""
    for period in range(1, len(batches)):
        if all(is_among(batches[i], [batches[i - period]]) for i in range(period, len(batches))):
            return period
    return len(batches)


def _of_row_by_row(arguments: Arguments) -> str | None:
    """Return why predictions and targets are not one number a row each; None where they are."""
    prediction, target = arguments["input"], arguments["target"]
    if prediction.shape != target.shape:
        return "predictions and targets are not of one shape"
    if prediction.ndim and prediction.numel() != len(prediction):
        return "the loss is a mean over several outputs a row"
    return None
