"""Predicted numbers over the levels of a field: how far they are off, and targets in the mean."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_fraction
from trueup.fields.calibration import FALSE_DISCOVERY_RATE, benjamini_hochberg
from trueup.fields.levels import read_levels
from trueup.losses import LOSSES, FloatArray
from trueup.read.columns import column, floats, read_weight, refuse_rows, require_rows
from trueup.read.targets import check_prediction, read_labels, read_prediction


@dataclass(frozen=True)
class NumberRows:
    """Rows of a field: what happened, what was predicted, and weights."""

    actual: FloatArray
    expected: FloatArray
    weight: FloatArray
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    def sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.codes, values, len(self.names)), np.float64)

    def counts(self) -> NDArray[np.intp]:
        """Return the rows of positive weight on each level."""
        return np.bincount(self.codes[self.weight > 0.0], minlength=len(self.names))


def read_number_rows(
    y_true: Any,
    y_pred: Any,
    field: Any,
    *,
    loss: str,
    name: str,
    n_quantiles: int,
    sample_weight: Any = None,
    exposure: Any = None,
) -> NumberRows:
    """Read rows of positive weight for a loss of numbers; exposure multiplies predictions."""
    actual = read_labels(column(y_true, "y_true"), LOSSES[loss], None, 1)
    expected = check_prediction(read_prediction(y_pred, None), LOSSES[loss], Counter())
    require_rows(len(actual), "y_pred", len(expected))
    if exposure is not None:
        expected = expected * _read_exposure(exposure, len(actual))
    levels = read_levels(field, name, n_quantiles)
    require_rows(len(actual), name, len(levels.codes))
    weight = read_weight(sample_weight, len(actual))
    weight = np.ones(len(actual)) if weight is None else weight
    kept = weight > 0.0
    present, codes = np.unique(levels.codes[kept], return_inverse=True)
    names = tuple(levels.names[code] for code in present)
    return NumberRows(actual[kept], expected[kept], weight[kept], codes, names)


def _read_exposure(exposure: Any, n: int) -> FloatArray:
    values = floats(column(exposure, "exposure"), "exposure")
    require_rows(n, "exposure", len(values))
    refuse_rows(values <= 0.0, values, "exposure must be positive", "Leave out such rows.")
    return values


def tail_of(confidence_level: float) -> float:
    """Return what an interval leaves out."""
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    return 1.0 - confidence_level


@dataclass(frozen=True)
class FieldResiduals:
    """How far predicted numbers are off on each level; the most surprising first.

    Arrays have one entry for each level.

    Attributes
    ----------
    error : float
        Mean absolute error of the levels: of counts, ``sum |actual - expected| / sum expected``; of
        targets, the mean over rows of the absolute mean residual of their level.
    floor : float
        What a right model would score on average on the same levels.
    dispersion : float
        Of counts, the variance in units of a Poisson variance, at least 1; it widens intervals. Of
        targets 1.
    level : str array
        Name of the level.
    n : int array
        Rows.
    actual, expected : float array
        Sums of counts; means of targets and of predictions.
    value : float array
        Of counts, actual over expected; of targets, actual minus expected.
    low, high : float array
        Interval of ``value`` for each level by itself.
    p_value, q_value : float array
        Two-sided, of the predictions being right on the level; Benjamini-Hochberg adjusted.
    confidence_level : float
        Of the intervals.

    Examples
    --------
    >>> from trueup.fields.count_ratio import actual_over_expected
    >>> found = actual_over_expected([3, 1, 0, 0], [1.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"])
    >>> found.level.tolist(), found.value.tolist()
    (['b', 'a'], [0.0, 2.0])
    """

    error: float
    floor: float
    dispersion: float
    level: NDArray[np.str_]
    n: NDArray[np.intp]
    actual: FloatArray
    expected: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    q_value: FloatArray
    confidence_level: float

    @property
    def n_discoveries(self) -> int:
        """Number of levels with q <= 0.05."""
        return int((self.q_value <= FALSE_DISCOVERY_RATE).sum())

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for a table; the worst level first."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: values for name, values in arrays.items() if isinstance(values, np.ndarray)}


def worst_first(
    names: tuple[str, ...],
    error: float,
    floor: float,
    confidence_level: float,
    dispersion: float = 1.0,
    **levels: NDArray[Any],
) -> FieldResiduals:
    """Return the result with the most surprising level first, of arrays in the order of names."""
    levels["q_value"] = benjamini_hochberg(levels["p_value"])
    gap = np.abs(levels["actual"] - levels["expected"]) * levels["n"]
    order = np.lexsort((-gap, levels["p_value"]))
    return FieldResiduals(
        error=error,
        floor=floor,
        dispersion=dispersion,
        confidence_level=confidence_level,
        level=np.array(names)[order],
        **{name: values[order] for name, values in levels.items()},
    )


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
    >>> from trueup.fields.residuals import mean_residuals
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
        error=float(share @ np.abs(value)),
        floor=float(share @ (error * np.sqrt(2.0 / np.pi))),
        confidence_level=confidence_level,
        n=rows.counts(),
        actual=rows.sums(weight * rows.actual) / total,
        expected=rows.sums(weight * rows.expected) / total,
        value=value,
        low=value - half,
        high=value + half,
        p_value=2.0 * stdtr(freedom, -statistic),
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
