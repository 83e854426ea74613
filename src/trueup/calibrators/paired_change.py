"""What a calibrator changes on rows it was not fitted on, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrators.scores import FloatArray, to_logit
from trueup.losses import LogLoss, SoftmaxLogLoss


@dataclass(frozen=True)
class Change:
    """After minus before: the value and its standard error."""

    value: float
    standard_error: float


def row_log_loss(y: FloatArray, p: FloatArray) -> FloatArray:
    """Return the log loss of each row in nats, for p of shape (n,) or (n, k)."""
    loss = SoftmaxLogLoss() if p.ndim == 2 else LogLoss()
    return loss.values(y, to_logit(p))


def log_loss_change(
    y: FloatArray, before: FloatArray, after: FloatArray, weight: FloatArray
) -> Change:
    """Return the paired change of the mean log loss, in nats.

    Parameters
    ----------
    y : array of shape (n,)
        Class indices.
    before, after : arrays of shape (n,) or (n, k)
        Probabilities.
    weight : array of shape (n,)
        Positive weights.
    """
    difference = row_log_loss(y, after) - row_log_loss(y, before)
    share = weight / weight.sum()
    mean = float(share @ difference)
    return Change(mean, float(np.sqrt((share**2) @ (difference - mean) ** 2)))


def field_error_change(
    y: FloatArray,
    before: FloatArray,
    after: FloatArray,
    weight: FloatArray,
    codes: Sequence[NDArray[np.intp]],
) -> Change:
    """Return the change of the debiased squared field error, its mean over the fields.

    Parameters
    ----------
    y, before, after, weight
        As for :func:`log_loss_change`.
    codes : sequence of int arrays of shape (n,)
        The cell of each row, for each field.

    Returns
    -------
    Change
        Of ``sum over cells of (s^2 - v) / n``, with s the sum of ``y - p`` in the cell and v its
        variance under y ~ p, that is ``s^2`` minus its expectation for a perfect model. The error
        of a prediction may be negative.

    Notes
    -----
    With ``d`` the cell's sum of ``after - before``, ``s_after^2 - s_before^2 = -d (2 s_before -
    d)``. Given the predictions, ``d`` is a constant, so the change is linear in the labels: its
    standard error follows from the rows' residuals without resampling. With k > 2 classes the
    squares are summed over classes.
    """
    label, before, after = _one_column_per_class(y, before, after)
    value, coefficient = 0.0, np.zeros_like(before)
    for code in codes:
        moved = _cell_sums(code, weight[:, None] * (after - before))
        error = _cell_sums(code, weight[:, None] * (label - before))
        value += float((-moved * (2.0 * error - moved)).sum()) / len(codes)
        coefficient -= 2.0 * moved[code] / len(codes)
    variance_change = after * (1.0 - after) - before * (1.0 - before)
    value -= float((weight**2) @ variance_change.sum(axis=1))
    row = weight * (coefficient * (label - after)).sum(axis=1)
    total = float(weight.sum())
    return Change(value / total, float(np.sqrt(row @ row)) / total)


def _one_column_per_class(
    y: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if before.ndim == 1:
        return y[:, None], before[:, None], after[:, None]
    return np.eye(before.shape[1])[y.astype(np.intp)], before, after


def _cell_sums(code: NDArray[np.intp], values: FloatArray) -> FloatArray:
    return np.stack([np.bincount(code, column) for column in values.T], axis=1)
