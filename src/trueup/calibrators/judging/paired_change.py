"""What a calibrator changes on rows it was not fitted on, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrators.probabilities import FloatArray, to_logit
from trueup.fields.cells import group_rows, squared_error_slope
from trueup.fields.levels import read_levels
from trueup.fields.sums import squared_error
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
    """Return the paired change of the mean log loss in nats; probabilities are (n,) or (n, k)."""
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
    """Return the change of ``FieldCalibration.debiased``, its mean over the fields.

    ``codes`` holds the cell of each row, for each field. With k > 2 classes the error is summed
    over the classes.
    """
    label, before, after = _one_column_per_class(y, before, after)
    value, row = 0.0, np.zeros(len(y))
    for code in codes:
        levels = read_levels(code, "codes")
        for own, old, new in zip(label.T, before.T, after.T, strict=True):
            before_it = group_rows(levels, own, old, weight)
            after_it = replace(before_it, y_proba=new[before_it.order])
            value += squared_error(after_it.sums) - squared_error(before_it.sums)
            slope = squared_error_slope(before_it, after_it.y_proba)
            row[before_it.order] += slope * (after_it.y_true - after_it.y_proba)
    return Change(value / len(codes), float(np.sqrt(row @ row)) / len(codes))


def _one_column_per_class(
    y: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if before.ndim == 1:
        return y[:, None], before[:, None], after[:, None]
    return np.eye(before.shape[1])[y.astype(np.intp)], before, after
