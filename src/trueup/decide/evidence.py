"""E-processes: how strongly paired differences say that one configuration is worse than another.

Both functions return the logarithm of a mixture of likelihood ratios over worse-only effects,
``effect ~ half-normal(0, tau^2)`` in units of the standard deviation of a difference. Under "not
worse" it is dominated by a non-negative martingale that starts at 1, so by Ville's inequality it
ever reaches ``1 / alpha`` with probability at most ``alpha``, whatever decides when to look.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr
from scipy.stats import t as student

FloatArray = NDArray[np.float64]

TAU = 1.5
"""Scale of the effects that the mixture looks for, in standard deviations of a difference."""


def log_evidence_known_variance(total: ArrayLike, n: ArrayLike, tau: float = TAU) -> FloatArray:
    """Return the log e-value of ``n`` standardised differences with the sum ``total``.

    Parameters
    ----------
    total : array-like
        Sum of the differences (positive = worse), divided by their known standard deviation.
    n : array-like
        Number of differences.
    tau : float, default 1.5
        Scale of the half-normal mixture.

    Returns
    -------
    array
        ``log 2 - log(1 + n tau^2) / 2 + total^2 tau^2 / (2 (1 + n tau^2)) + log Phi(total tau /
        sqrt(1 + n tau^2))``; large and positive = worse.

    Notes
    -----
    Proved for independent differences that are sub-Gaussian with at most the given variance;
    nothing is guaranteed where the variance is an estimate.

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
    """Return the log e-value of ``n`` differences whose variance is unknown.

    Parameters
    ----------
    total, total_of_squares : array-like
        Sum of the differences (positive = worse) and of their squares, in any unit.
    n : array-like
        Number of differences.
    tau : float, default 1.5
        Scale of the half-normal mixture.

    Returns
    -------
    array
        ``log 2 - log(1 + n tau^2) / 2 + (n / 2) log(A / A') + log F_n(B tau sqrt(n / (A' (1 + n
        tau^2))))`` with ``B`` the sum, ``A`` the sum of squares, ``A' = A - B^2 tau^2 / (1 + n
        tau^2)`` and ``F_n`` the distribution function of Student's t with n degrees of freedom. No
        change of unit alters it.

    Notes
    -----
    The mixture over the standard deviation is the right Haar measure, so the ratio is a martingale
    for independent normal differences of mean 0 and any variance (Hendriksen, de Heide and Grünwald
    2021; Pérez-Ortiz et al. 2024). A negative mean shifts every difference down by the same amount,
    which lowers the ratio on every path. Differences that are all zero are no evidence: 0 is
    returned.
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
