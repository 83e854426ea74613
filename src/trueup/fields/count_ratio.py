"""Counts over the levels of a field: actual over expected, with exposure and over-dispersion."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.fields.residuals import (
    FieldResiduals,
    NumberRows,
    read_number_rows,
    tail_of,
    worst_first,
)
from trueup.losses import FloatArray

_LEAST_DISPERSION = 1.0  # rows that vary less than Poisson's promise no narrower interval


def actual_over_expected(
    y_true: Any,
    y_pred: Any,
    field: Any,
    *,
    exposure: Any = None,
    sample_weight: Any = None,
    confidence_level: float = 0.95,
    n_quantiles: int = 20,
    name: str = "field",
) -> FieldResiduals:
    """Compare counts with their predictions on each level of a field.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Counts.
    y_pred : array-like of shape (n,)
        Positive predicted counts; with ``exposure``, predicted rates per unit of it.
    field : array-like of shape (n,)
        Level of each row, as in :func:`trueup.field_calibration`.
    exposure : array-like of shape (n,), optional
        Positive exposure of each row, such as years insured. A row of exposure e is expected to
        count ``e * y_pred``.
    sample_weight : array-like of shape (n,), optional
        Weights.
    confidence_level : float, default 0.95
        Of the interval of each level.
    n_quantiles : int, default 20
        Number of quantile bins of a field of fractional numbers.
    name : str
        Name of the field, for messages.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.

    Notes
    -----
    Garwood's exact Poisson interval, of counts divided by the dispersion: the mean squared Pearson
    residual within levels, which is above 1 where counts come in clusters.

    Examples
    --------
    >>> from trueup.fields.count_ratio import actual_over_expected
    >>> region = ["north"] * 50 + ["south"] * 50
    >>> rate, years = [0.5] * 50 + [1.0] * 50, [2.0] * 100
    >>> found = actual_over_expected([1] * 100, rate, region, exposure=years)
    >>> found.level.tolist(), found.value.tolist()
    (['south', 'north'], [0.5, 1.0])
    """
    rows = read_number_rows(
        y_true,
        y_pred,
        field,
        loss="poisson_deviance",
        name=name,
        n_quantiles=n_quantiles,
        sample_weight=sample_weight,
        exposure=exposure,
    )
    actual, expected = rows.sums(rows.weight * rows.actual), rows.sums(rows.weight * rows.expected)
    dispersion = _dispersion(rows, actual, expected)
    # A weighted sum of counts varies as a count in units of this.
    unit = dispersion * rows.sums(rows.weight**2 * rows.expected) / expected
    low, high = _garwood(actual / unit, expected / unit, tail_of(confidence_level))
    deviation = _poisson_deviation(expected / unit) * unit
    return worst_first(
        rows.names,
        error=float(np.abs(actual - expected).sum() / expected.sum()),
        floor=float(deviation.sum() / expected.sum()),
        confidence_level=confidence_level,
        dispersion=dispersion,
        n=rows.counts(),
        actual=actual,
        expected=expected,
        value=actual / expected,
        low=low,
        high=high,
        p_value=_poisson_p_value(actual / unit, expected / unit),
    )


def _dispersion(rows: NumberRows, actual: FloatArray, expected: FloatArray) -> float:
    """Return the mean squared Pearson residual about the level's own ratio, at least 1."""
    own = rows.expected * (actual / expected)[rows.codes]
    known = own > 0.0
    freedom = int(known.sum()) - len(rows.names)
    if freedom < 1:
        return _LEAST_DISPERSION
    squares = (rows.actual[known] - own[known]) ** 2 / own[known]
    return max(float(squares.sum()) / freedom, _LEAST_DISPERSION)


def _garwood(
    actual: FloatArray, expected: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import gammaincinv  # loaded where fields are measured

    some = actual > 0.0
    low = np.where(some, gammaincinv(np.where(some, actual, 1.0), 0.5 * alpha), 0.0)
    return low / expected, gammaincinv(actual + 1.0, 1.0 - 0.5 * alpha) / expected


def _poisson_p_value(actual: FloatArray, expected: FloatArray) -> FloatArray:
    from scipy.special import gammainc, gammaincc

    some = actual > 0.0
    at_least = np.where(some, gammainc(np.where(some, actual, 1.0), expected), 1.0)
    at_most = gammaincc(actual + 1.0, expected)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(at_least, at_most)))


def _poisson_deviation(mean: FloatArray) -> FloatArray:
    """Return the mean absolute deviation of Poisson counts."""
    from scipy.special import gammaln

    whole = np.floor(mean)
    log_value = (whole + 1.0) * np.log(mean) - mean - gammaln(whole + 1.0)
    return np.asarray(2.0 * np.exp(log_value))
