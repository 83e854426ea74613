"""Accuracy of a metric: how often one pipeline's model beats the other's, over all pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtri

from trueup.decide.checks import FloatArray, check_level, check_values
from trueup.decide.proportion import Proportion


def metric_accuracy(a: ArrayLike, b: ArrayLike, *, confidence_level: float = 0.95) -> Proportion:
    """Estimate P(value of A < value of B) + P(equal) / 2 from all pairs of independent runs.

    Parameters
    ----------
    a : array of shape (m,)
        Metric of each run of pipeline A; lower is better.
    b : array of shape (n,)
        Metric of each run of pipeline B.
    confidence_level : float, default 0.95
        Nominal coverage of the interval, in (0, 1).

    Returns
    -------
    Proportion
        ``value`` in [0, 1], 1 when each run of A beats each run of B; ``n_pairs`` is m * n.

    Raises
    ------
    InvalidInputError
        If an array is empty, not one-dimensional or not finite.

    Notes
    -----
    The interval is Newcombe's method 5: the roots of a score equation whose variance is Hanley and
    McNeil's under a pair of exponentials with m and n replaced by their mean. It keeps a length at
    0 and 1, where DeLong's interval and the percentile bootstrap collapse. It is an interval for a
    fixed number of runs with the validation rows fixed, and it holds approximately where the two
    distributions have different shapes.

    Runs that share a seed are dependent across the arms: use :func:`paired_win_rate`, which
    estimates another quantity.

    References
    ----------
    Towards Accurate Deep Learning Model Selection: A Calibrated Metric Approach, Eq. 8 (ties count
    one half here, nothing there). R. G. Newcombe, Statistics in Medicine 25 (2006) 559-573.

    Examples
    --------
    >>> print(metric_accuracy([0.40, 0.41, 0.43], [0.42, 0.44, 0.45]))
    89% [40, 99]
    """
    a, b = check_values("a", a), check_values("b", b)
    check_level("confidence_level", confidence_level)
    value = share_of_pairs(a, b)
    low, high = newcombe_interval(value, len(a), len(b), confidence_level)
    return Proportion(value, low, high, len(a) * len(b), confidence_level)


def share_of_pairs(a: FloatArray, b: FloatArray) -> float:
    """Return the share of pairs with a < b, ties counting one half, in O((m + n) log n)."""
    b = np.sort(b)
    above = len(b) - np.searchsorted(b, a, side="right")
    not_below = len(b) - np.searchsorted(b, a, side="left")
    return float((above.sum() + not_below.sum()) / (2 * len(a) * len(b)))


def newcombe_interval(value: float, m: int, n: int, confidence_level: float) -> tuple[float, float]:
    """Return Newcombe's method 5 interval of a Mann-Whitney proportion from m and n runs."""
    z = float(ndtri(0.5 + confidence_level / 2.0))
    low = _lower_root(value, m, n, z)
    return low, 1.0 - _lower_root(1.0 - value, m, n, z)


def _lower_root(value: float, m: int, n: int, z: float) -> float:
    if value == 0.0:
        return 0.0

    def score(theta: float) -> float:
        return (value - theta) ** 2 - z**2 * _variance(theta, m, n)

    if score(math.nextafter(value, 0.0)) >= 0.0:  # the interval is narrower than float64
        return value
    return float(brentq(score, 0.0, math.nextafter(value, 0.0), xtol=1e-14))


def _variance(theta: float, m: int, n: int) -> float:
    extra = (m + n) / 2.0 - 1.0
    spread = (1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta)
    return theta * (1.0 - theta) * (1.0 + extra * spread) / (m * n)
