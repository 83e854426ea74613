"""How to spend a budget of trainings: what a configuration is worth, and how many go to the finals.

A configuration's mean over few seeds is noisy, but its neighbours say something about it too. A
Gaussian process over all configurations draws each mean to its neighbourhood, the more the fewer
seeds it has; with no noise it leaves the means where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST = 0.5
"""Largest share of the budget for the finals."""
FINALISTS = 0.25
"""Share of the configurations whose spread the noise is compared with: those near the best."""
_FEW = 6
_LENGTHS, _VARIANCES, _OWN = (0.3, 0.6, 1.2), (0.6, 1.8), (0.02, 0.1, 0.3)


@dataclass(frozen=True)
class Shrunken:
    """What configurations are worth, their neighbours considered.

    Attributes
    ----------
    mean : array of shape (k,)
        Posterior mean of each configuration's true mean, lower = better.
    sd : array of shape (k,)
        Posterior standard deviation.
    """

    mean: FloatArray
    sd: FloatArray


def shrunken_means(points: FloatArray, means: FloatArray, variance: FloatArray) -> Shrunken:
    """Draw means to their neighbourhood.

    Parameters
    ----------
    points : array of shape (k, d)
        The configurations in the unit cube.
    means : array of shape (k,)
        Mean over the seeds of each, lower = better; infinite without any.
    variance : array of shape (k,)
        Variance of each mean over seeds.

    Returns
    -------
    Shrunken
        What lies further above the median than the best below it is taken to lie as far: how bad a
        failure is says nothing about the best.

    Notes
    -----
    The process has a squared exponential kernel and an effect of each configuration of its own, so
    that many seeds outweigh all neighbours. Length, variance and own share maximise the marginal
    likelihood on a small grid. All configurations take part: to leave out the worse half would
    leave the luckier ones of the others.
    """
    sd, mean = np.sqrt(variance), means.copy()
    known = np.flatnonzero(np.isfinite(means))
    if len(known) < _FEW:
        return Shrunken(mean, sd)
    middle = float(np.median(means[known]))
    clipped = np.minimum(means[known], 2.0 * middle - means[known].min())
    if not np.ptp(clipped) > 0.0:  # at least half of them are the best
        return Shrunken(mean, sd)
    mean[known], sd[known] = _posterior(points[known], clipped, variance[known])
    return Shrunken(mean, sd)


def _posterior(
    points: FloatArray, means: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    centre, scale = float(np.median(means)), float(means.std())
    noise = np.diag(variance / scale**2 + 1e-8)
    target = (means - centre) / scale
    squares = ((points[:, None, :] - points) ** 2).sum(-1)
    best_fit, best = -np.inf, (target, np.zeros_like(target))
    for length, signal, own in product(_LENGTHS, _VARIANCES, _OWN):
        prior = signal * (np.exp(-0.5 * squares / length**2) + own * np.eye(len(target)))
        lower = cholesky(prior + noise, lower=True)
        weights = cho_solve((lower, True), target)
        fit = -0.5 * target @ weights - np.log(np.diag(lower)).sum()
        if fit > best_fit:
            half = solve_triangular(lower, prior, lower=True)
            left = np.maximum(np.diag(prior) - (half**2).sum(0), 0.0)
            best_fit, best = fit, (prior @ weights, np.sqrt(left))
    return centre + scale * best[0], scale * best[1]


def noise_share(means: FloatArray, noise: float) -> float:
    """Return the noise of one seed, as a share of itself and the spread near the best.

    Parameters
    ----------
    means : array of shape (k,)
        Mean of each configuration, lower = better.
    noise : float
        Variance of a single result over seeds.

    Returns
    -------
    float
        0 = the seed changes nothing, 1 = configurations near the best can't be told apart.
    """
    finite = np.sort(means[np.isfinite(means)])
    near = finite[: max(3, int(np.ceil(FINALISTS * len(finite))))]
    spread = float(near.var()) if len(near) > 1 else 0.0
    return noise / (noise + spread) if noise > 0.0 else 0.0


def final_share(noise_share: float) -> float:
    """Return the share of the budget for the finals: none without noise, at most a half."""
    return min(MOST, 0.6 * noise_share)
