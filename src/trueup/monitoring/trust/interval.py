"""Intervals for a realized mean squared error, on the log scale: they stay above 0."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueup.monitoring.inputs import FloatArray

CONFIDENCE_LEVEL = 0.9
_NORMAL_QUARTILES = float(2.0 * ndtri(0.75))
_FLOOR = 1e-3
_TINY = float(np.finfo(np.float64).tiny)


def log_interval(
    estimate: float, variance: float, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[float, float]:
    """Return ``estimate * exp(-+ z sqrt(variance))`` of the log's variance; [0, 0] around 0."""
    if estimate <= 0.0:
        return 0.0, 0.0
    reach = float(np.exp(ndtri(0.5 + confidence_level / 2.0) * np.sqrt(variance)))
    return estimate / reach, estimate * reach


def batch_sampling_variance(row_errors: FloatArray) -> float:
    """Return the variance of the log of a realized mean, given the expected error of each row.

    Each realized squared error is its expectation times a chi-square of one degree of freedom, as
    of a normal residual: variance ``2 e^2`` per row.
    """
    mean = float(row_errors.mean())
    if mean <= 0.0:
        return 0.0
    return float(2.0 * (row_errors**2).mean() / (len(row_errors) * mean**2))


def weighted_sampling_variance(errors: FloatArray, weights: FloatArray, m: int) -> float:
    """Return the variance of the log of the mean of ``m`` errors drawn as the weights say."""
    total = float(weights.sum())
    mean = float(weights @ errors) / total if total > 0.0 else 0.0
    if mean <= 0.0:
        return 0.0
    variance = float(weights @ (errors - mean) ** 2) / total
    return variance / (m * mean**2)


def log_variance(values: FloatArray) -> float:
    """Return the sample variance of the logarithms of values of shape (n,)."""
    return float(_logarithms(values).var(ddof=1)) if len(values) > 1 else 0.0


def log_spread(values: FloatArray) -> float:
    """Return a variance of the logarithms that one value far away hardly moves.

    It is that of a normal distribution with the values' interquartile range: the median of the
    values resists one bad member, and so must its interval.
    """
    low, high = np.quantile(_logarithms(values), (0.25, 0.75))
    return float(((high - low) / _NORMAL_QUARTILES) ** 2)


def _logarithms(values: FloatArray) -> FloatArray:
    """Return the logarithms; values below a thousandth of the median count as that much."""
    floor = max(_FLOOR * float(np.median(values)), _TINY)
    return np.asarray(np.log(np.maximum(values, floor)))
