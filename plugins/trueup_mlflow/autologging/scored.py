"""What a metric function was called with, kept so that it can be evaluated later."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup
from trueup import Evaluation, Split
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.read.rows import columns_are_known

_AGREEMENT = 1e-4  # float32 means over many rows are off by a few 1e-6


@dataclass(frozen=True)
class Scored:
    """A snapshot of the arguments of one metric call."""

    loss: str  # "log_loss", "brier_score" or "mean_squared_error"
    value: float  # what the function returned, or the square of that where it returned the root
    y_true: NDArray[Any]  # shape (n,): labels or targets
    # shape (n,) or (n, k): probabilities or predictions, or logits where ``are_logits``
    y_pred: NDArray[Any]
    sample_weight: NDArray[Any] | None = None  # shape (n,), optional: weights
    # classes in the order of the columns, the positive one last
    labels: tuple[Any, ...] | None = None
    are_logits: bool = False  # whether ``y_pred`` holds logits
    root: float | None = None  # the square root of ``value``, which may be logged in its place

    @property
    def nbytes(self) -> int:
        weight = 0 if self.sample_weight is None else self.sample_weight.nbytes
        return self.y_true.nbytes + self.y_pred.nbytes + weight

    def evaluate(self, split: Split) -> Evaluation:
        """Return the evaluation of what was scored.

        Raises
        ------
        InvalidInputError, UndefinedMetricError
            From :func:`trueup.evaluate`.
        UndefinedMetricError
            If the mean loss is not the number that the metric function returned.
        """
        prediction = self.y_pred if self.are_logits else _clipped(self.y_pred, self.loss)
        with columns_are_known():
            evaluation = trueup.evaluate(
                self.y_true,
                None if self.are_logits else prediction,
                y_logit=prediction if self.are_logits else None,
                loss=self.loss,
                labels=self._resolved_labels(),
                sample_weight=self.sample_weight,
                split=split,
            )
        if not math.isclose(evaluation.vanilla, self.value, rel_tol=_AGREEMENT, abs_tol=1e-9):
            raise UndefinedMetricError(
                f"the logged number must be the mean {self.loss} of its rows",
                f"{self.value} where the mean is {evaluation.vanilla}",
                "Use log_evaluation.",
            )
        return evaluation

    def _resolved_labels(self) -> tuple[Any, ...] | None:
        if self.loss == "mean_squared_error" or self.labels is not None:
            return self.labels
        return tuple(np.unique(self.y_true).tolist())


def snapshot(values: Any) -> NDArray[Any]:
    """Return a copy as a numpy array, (n, 1) as (n,): the caller may reuse its own."""
    array = np.array(on_cpu(values) if hasattr(values, "detach") else values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InvalidInputError(
            "predictions must have one or two dimensions",
            f"shape {array.shape}",
            "Use log_evaluation.",
        )
    return array


def on_cpu(tensor: Any) -> NDArray[Any]:
    """Return a tensor as an array, which may share its memory; numpy has no bfloat16."""
    found = tensor.detach().cpu()
    low = found.is_floating_point() and found.element_size() < 4
    return np.asarray((found.float() if low else found).numpy())


def _clipped(probability: NDArray[Any], loss: str) -> NDArray[Any]:
    """Clip as scikit-learn's log loss does: at the eps of the dtype of the probabilities."""
    if loss == "mean_squared_error":
        return probability.astype(np.float64)
    is_float = probability.dtype.kind == "f" and loss == "log_loss"
    eps = np.finfo(probability.dtype if is_float else np.float64).eps
    return np.asarray(np.clip(probability, eps, 1 - eps), dtype=np.float64)
