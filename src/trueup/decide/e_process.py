"""E-processes of paired differences: verdicts that stay honest under looking after each seed.

An e-process starts at 1 and, while the null hypothesis holds, exceeds ``1 / alpha`` *ever* with
probability at most ``alpha`` (Ville's inequality), whatever decides when to look. The comparison
asks for any effect, by a scale-invariant mixture. The race asks for worse-only effects, by a
mixture of likelihood ratios with ``effect ~ half-normal(0, tau^2)`` in units of the standard
deviation of a difference, which a non-negative martingale dominates under "not worse".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr
from scipy.stats import t as student

from trueup.decide.pairing import FloatArray

TAU = 1.5
"""Scale of the effects that the race looks for, in standard deviations of a difference."""

PRIOR_VARIANCE = 1.0
"""Variance g of the standardised effect in the mixture: the rule is sharpest near one sd."""


@dataclass(frozen=True)
class Moments:
    """Counts 1 to n (n,), mean and centred sum of squares (..., n) of each prefix of a sequence."""

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
    """Return log E_n after each difference, (..., n), for the null hypothesis E[D] = ``null``.

    Notes
    -----
    With t the one-sample t statistic, v = n - 1 and g = 1,

        log E = -1/2 log(1 + n g) + n/2 log[(1 + t^2 / v) / (1 + t^2 / (v (1 + n g)))],

    the Bayes factor of a N(0, g) prior on the standardised mean with the right Haar prior on the
    scale. It is an e-process for independent normal differences of one unknown scale. For other
    distributions it is an approximation, better the more symmetric they are; the simulations beside
    the benchmarks say how good.

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
    """Return the half-width of the confidence sequence around each prefix mean, shape (..., n).

    It is {mu : E_n(mu) < 1 / alpha}, which ever misses E[D] with a probability of at most alpha;
    infinite while no data could reject any mean (fewer than 5 differences at alpha = .05).
    """
    shrink = 1.0 + moments.count * PRIOR_VARIANCE
    bound = np.exp((np.log(shrink) - 2.0 * np.log(alpha)) / moments.count)
    finite = bound < shrink
    square = moments.sum_of_squares / moments.count * (bound - 1.0)
    square = np.divide(square, 1.0 - bound / shrink, where=finite, out=np.full_like(square, np.inf))
    return np.asarray(np.sqrt(square))


def log_evidence_known_variance(total: ArrayLike, n: ArrayLike, tau: float = TAU) -> FloatArray:
    """Return the log e-value of ``n`` standardised differences of that sum; positive = worse.

    Notes
    -----
    ``log 2 - log(1 + n tau^2) / 2 + total^2 tau^2 / (2 (1 + n tau^2)) + log Phi(total tau / sqrt(1
    + n tau^2))``, where tau is the scale of the half-normal mixture. Proved for independent
    differences that are sub-Gaussian with at most the given variance; nothing is guaranteed where
    the variance is an estimate.

    Examples
    --------
    >>> float(log_evidence_known_variance(0.0, 0))
    0.0
    """
    total, n = np.asarray(total, dtype=np.float64), np.asarray(n, dtype=np.float64)
    spread = 1.0 + n * tau**2
    exponent = total**2 * tau**2 / (2.0 * spread)
    return np.asarray(
        np.log(2.0) - 0.5 * np.log(spread) + exponent + log_ndtr(total * tau / np.sqrt(spread))
    )


def log_evidence_student(
    total: ArrayLike, total_of_squares: ArrayLike, n: ArrayLike, tau: float = TAU
) -> FloatArray:
    """Return the log e-value of ``n`` differences whose variance is unknown; positive = worse.

    Notes
    -----
    ``log 2 - log(1 + n tau^2) / 2 + (n / 2) log(A / A') + log F_n(B tau sqrt(n / (A' (1 + n
    tau^2))))`` with ``B`` the sum of the differences, ``A`` the sum of their squares, ``A' = A -
    B^2 tau^2 / (1 + n tau^2)`` and ``F_n`` the distribution function of Student's t with n degrees
    of freedom. No change of unit alters it. The mixture over the standard deviation is the right
    Haar measure, so the ratio is a martingale for independent normal differences of mean 0 and any
    variance (Hendriksen, de Heide and Grünwald 2021; Pérez-Ortiz et al. 2024). A negative mean
    shifts every difference down by the same amount, which lowers the ratio on every path.
    Differences that are all zero are no evidence: 0 is returned.
    """
    total, n = np.asarray(total, dtype=np.float64), np.asarray(n, dtype=np.float64)
    squares = np.asarray(total_of_squares, dtype=np.float64)
    spread = 1.0 + n * tau**2
    known = (squares > 0.0) & (n > 0)
    before = np.where(known, squares, 1.0)
    after = np.maximum(before - np.where(known, total, 0.0) ** 2 * tau**2 / spread, before / spread)
    n_safe = np.maximum(n, 1.0)
    upper = student.logcdf(total * tau * np.sqrt(n_safe / (after * spread)), n_safe)
    value = np.log(2.0) - 0.5 * np.log(spread) + 0.5 * n * np.log(before / after) + upper
    return np.asarray(np.where(known, value, 0.0))
