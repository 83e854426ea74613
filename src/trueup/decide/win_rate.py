"""How often one pipeline's model beats the other's: over the pairs of one seed, or over all."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri

from trueup.decide.pairing import FloatArray, check_level, check_same_length, check_values
from trueup.presentation import Line, Presented


@dataclass(frozen=True)
class Proportion(Presented):
    """An estimated probability with its interval.

    Attributes
    ----------
    value : float
        The estimate, in [0, 1].
    low, high : float
        Ends of the interval, in [0, 1].
    n_pairs : int
        Number of pairs that ``value`` is a mean of; pairs that share a model are not independent.
    confidence_level : float
        Nominal coverage of the interval for a fixed number of seeds.

    Examples
    --------
    >>> from trueup.comparison import paired_win_rate
    >>> paired_win_rate([0.41, 0.42, 0.40], [0.44, 0.45, 0.42]).value
    1.0
    """

    value: float
    low: float
    high: float
    n_pairs: int
    confidence_level: float

    def summary(self) -> str:
        """Return the share of the pairs that are won, in words."""
        return f"{self} of {self.n_pairs} pairs are won."

    def lines(self) -> list[Line]:
        """Return the share with its interval."""
        return [Line("share of pairs won", self.value, self.low, self.high)]

    def __str__(self) -> str:
        return f"{self.value:.0%} [{100 * self.low:.0f}, {100 * self.high:.0f}]"


def paired_win_rate(a: ArrayLike, b: ArrayLike, *, confidence_level: float = 0.95) -> Proportion:
    """Estimate P(D < 0) + P(D = 0) / 2, where D = A - B within a pair of runs that share a seed.

    Parameters
    ----------
    a, b : array of shape (n,)
        Metric of both pipelines, in the same order of seeds; lower is better.
    confidence_level : float, default 0.95
        Nominal coverage of the interval, in (0, 1).

    Returns
    -------
    Proportion
        ``value`` in [0, 1], 1 when A wins each pair.

    Raises
    ------
    InvalidInputError
        If the arrays differ in length, are empty, not one-dimensional or not finite.

    Notes
    -----
    Clopper-Pearson: coverage is at least nominal for independent pairs. A tie is counted against A
    in the lower end and for A in the upper end, so that ties can only widen the interval.

    This is not the accuracy of Eq. 8. The same models can give 92% of all pairs and 99.9% of the
    pairs that share a training sample, because what the two runs have in common cancels in D.

    Examples
    --------
    >>> print(paired_win_rate([0.40, 0.41, 0.43, 0.44], [0.42, 0.44, 0.45, 0.43]))
    75% [19, 99]
    """
    a, b = check_values("a", a), check_values("b", b)
    check_same_length(a, b, ("a", "b"))
    check_level("confidence_level", confidence_level)
    wins = float(np.sum(a < b) + np.sum(a == b) / 2.0)
    tail = (1.0 - confidence_level) / 2.0
    low = _lower_end(int(np.sum(a < b)), len(a), tail)
    high = 1.0 - _lower_end(int(np.sum(a > b)), len(a), tail)
    return Proportion(wins / len(a), low, high, len(a), confidence_level)


def _lower_end(successes: int, n: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, n - successes + 1, tail))


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
