"""Targets over the levels of a field: the mean residual, with interval and floor."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.fields.number_rows import NumberRows, read_number_rows, tail_of
from trueup.fields.residuals import FieldResiduals, LevelValues, worst_first
from trueup.losses import FloatArray


def mean_residuals(
    y_true: Any,
    y_pred: Any,
    field: Any,
    *,
    sample_weight: Any = None,
    confidence_level: float = 0.95,
    n_quantiles: int = 20,
    name: str = "field",
) -> FieldResiduals:
    """Return the mean of target minus prediction on each level of a field.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    field, sample_weight, confidence_level, n_quantiles, name
        As for :func:`trueup.fields.count_ratio.actual_over_expected`.

    Notes
    -----
    Student's t interval with the spread of the level's own residuals; a level of a single row takes
    the spread of all. With weights the rows of a level count as Kish's effective number.

    Examples
    --------
    >>> from trueup.fields.mean_residuals import mean_residuals
    >>> found = mean_residuals([1.0, 3.0, 5.0, 5.1], [1.0, 1.0, 5.0, 5.0], ["a", "a", "b", "b"])
    >>> dict(zip(found.level.tolist(), found.value.round(2).tolist()))
    {'a': 1.0, 'b': 0.05}
    """
    from scipy.special import stdtr, stdtrit  # loaded where fields are measured

    rows = read_number_rows(
        y_true,
        y_pred,
        field,
        loss="mean_squared_error",
        name=name,
        n_quantiles=n_quantiles,
        sample_weight=sample_weight,
    )
    weight, residual = rows.weight, rows.actual - rows.expected
    total = rows.sums(weight)
    value = rows.sums(weight * residual) / total
    effective = total**2 / rows.sums(weight**2)
    freedom, error = _standard_error(rows, residual - value[rows.codes], total, effective)
    half = -stdtrit(freedom, 0.5 * tail_of(confidence_level)) * error
    share = total / total.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.abs(value) / error
    statistic = np.where(error > 0.0, ratio, np.where(value == 0.0, 0.0, np.inf))
    return worst_first(
        rows.names,
        LevelValues(
            n=rows.counts(),
            actual=rows.sums(weight * rows.actual) / total,
            expected=rows.sums(weight * rows.expected) / total,
            value=value,
            low=value - half,
            high=value + half,
            p_value=2.0 * stdtr(freedom, -statistic),
        ),
        error=float(share @ np.abs(value)),
        floor=float(share @ (error * np.sqrt(2.0 / np.pi))),
        dispersion=1.0,
        confidence_level=confidence_level,
    )


def _standard_error(
    rows: NumberRows, deviation: FloatArray, total: FloatArray, effective: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return degrees of freedom and standard error of the mean residual of each level."""
    variance = rows.sums(rows.weight * deviation**2) / total
    pooled_freedom = max(float((effective - 1.0).sum()), 1.0)
    pooled = float((effective * variance).sum()) / pooled_freedom
    alone = effective < 1.5
    freedom = np.where(alone, pooled_freedom, effective - 1.0)
    own = np.where(alone, pooled, variance * effective / np.maximum(effective - 1.0, 0.5))
    return freedom, np.sqrt(own / effective)
