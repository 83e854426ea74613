"""The anytime-valid rule: a scale-invariant e-process of paired differences.

People look after each seed, so a verdict must stay honest under looking. An e-process E_n starts
at 1 and, while the null hypothesis holds, exceeds 1 / alpha *ever* with probability at most alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trueup.decide.checks import FloatArray

PRIOR_VARIANCE = 1.0
"""Variance g of the standardised effect in the mixture: the rule is sharpest near one sd."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and centred sum of squares of each prefix of a sequence.

    Attributes
    ----------
    count : array of shape (n,)
        1 to n.
    mean, sum_of_squares : array of shape (..., n)
        Mean, and sum of squared deviations from it, of the first 1 to n differences.
    """

    count: FloatArray
    mean: FloatArray
    sum_of_squares: FloatArray


def prefix_moments(differences: ArrayLike) -> Moments:
    """Return the moments of each prefix along the last axis."""
    differences = np.asarray(differences, dtype=np.float64)
    count = np.arange(1.0, differences.shape[-1] + 1.0)
    # Centring on the first value keeps the digits that the sums of raw squares would cancel.
    origin = differences[..., :1]
    centred = differences - origin
    mean = np.cumsum(centred, axis=-1) / count
    squares = np.cumsum(centred**2, axis=-1) - count * mean**2
    return Moments(count, mean + origin, np.maximum(squares, 0.0))


def log_e_process(differences: ArrayLike, *, null: float = 0.0) -> FloatArray:
    """Return log E_n after each difference, for the null hypothesis E[D] = ``null``.

    Parameters
    ----------
    differences : array of shape (..., n)
        Paired differences in a fixed order of seeds; leading axes are independent sequences.
    null : float, default 0
        Mean of the differences under the hypothesis.

    Returns
    -------
    array of shape (..., n)
        Natural logarithm of the e-value of each prefix; 0 after one difference.

    Notes
    -----
    With t the one-sample t statistic, v = n - 1 and g = 1,

        log E = -1/2 log(1 + n g) + n/2 log[(1 + t^2 / v) / (1 + t^2 / (v (1 + n g)))],

    the Bayes factor of a N(0, g) prior on the standardised mean with the right Haar prior on the
    scale. It is an e-process for independent normal differences of one unknown scale. For other
    distributions it is an approximation, better the more symmetric they are; the simulations
    beside the benchmarks say how good.

    References
    ----------
    T. L. Lai, Annals of Statistics 4 (1976) 265-280; H. Wang and A. Ramdas, "Anytime-valid t-tests
    and confidence sequences for Gaussian means with unknown variance" (2023).
    """
    moments = prefix_moments(differences)
    between = moments.count * (moments.mean - null) ** 2
    shrink = 1.0 + moments.count * PRIOR_VARIANCE
    within = moments.sum_of_squares
    # (1 + t^2/v) / (1 + t^2/(v shrink)) times sum of squares above and below: no division by zero.
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (within + between) / (within + between / shrink)
    ratio = np.where(within + between > 0.0, ratio, 1.0)
    return np.asarray(-0.5 * np.log(shrink) + 0.5 * moments.count * np.log(ratio))


def confidence_radius(moments: Moments, alpha: float) -> FloatArray:
    """Return the half-width of the confidence sequence around each prefix mean.

    Parameters
    ----------
    moments : Moments
        Moments of the prefixes.
    alpha : float
        Probability that the interval ever misses E[D], in (0, 1).

    Returns
    -------
    array of shape (..., n)
        Infinite while no data could reject any mean (fewer than 5 differences at alpha = .05).

    Notes
    -----
    The interval is {mu : E_n(mu) < 1 / alpha}, solved in closed form.
    """
    shrink = 1.0 + moments.count * PRIOR_VARIANCE
    bound = np.exp((np.log(shrink) - 2.0 * np.log(alpha)) / moments.count)
    finite = bound < shrink
    square = moments.sum_of_squares / moments.count * (bound - 1.0)
    square = np.divide(square, 1.0 - bound / shrink, where=finite, out=np.full_like(square, np.inf))
    return np.asarray(np.sqrt(square))
