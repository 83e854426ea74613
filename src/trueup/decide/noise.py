"""How much a configuration's result moves with the seed, and what that says for spending a budget.

The noise comes from a two-way layout of results; all its arrays may have leading axes, along which
everything is done independently. A configuration's mean over few seeds is noisy, but its neighbours
say something about it too: a Gaussian process over all configurations draws each mean to its
neighbourhood, the more the fewer seeds it has; with no noise it leaves the means where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
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


_SWEEPS = 4
_PRIOR_DOF = (4.0, 60.0)
_INFLATION = 2.5


@dataclass(frozen=True)
class SeedNoise:
    """Variance over seeds, with the effect that a seed has on all configurations removed.

    Attributes
    ----------
    own : array of shape (..., k)
        Variance of each configuration from its own seeds, in squared units of the metric; 0 without
        any.
    own_dof : array of shape (..., k)
        Degrees of freedom of ``own``.
    pooled : array of shape (...,)
        Variance over all configurations.
    pooled_dof : array of shape (...,)
        Degrees of freedom of ``pooled``.
    prior_dof : array of shape (...,)
        Degrees of freedom that the pool is worth in a moderated variance.
    """

    own: FloatArray
    own_dof: FloatArray
    pooled: FloatArray
    pooled_dof: FloatArray
    prior_dof: FloatArray

    @property
    def moderated(self) -> FloatArray:
        """Each configuration's variance shrunk towards the pool (Smyth 2004), shape (..., k)."""
        prior = self.prior_dof[..., None]
        weighted = prior * self.pooled[..., None] + self.own_dof * self.own
        return np.asarray(weighted / (prior + self.own_dof))

    @property
    def cautious(self) -> FloatArray:
        """The larger of the moderated and the own variance, each inflated for its uncertainty.

        The own one keeps a configuration that is noisier than the others from borrowing their calm.
        """
        moderated = self.moderated * (1.0 + _INFLATION / (self.prior_dof[..., None] + self.own_dof))
        own = self.own * (1.0 + _INFLATION / np.maximum(self.own_dof, 1e-9))
        return np.maximum(moderated, np.where(self.own_dof > 0.0, own, 0.0))


def seed_noise(values: FloatArray, n_seeds: NDArray[np.intp]) -> SeedNoise:
    """Estimate the variance over seeds.

    Parameters
    ----------
    values : array of shape (..., k, s)
        Result of each configuration under each seed index; entries from ``n_seeds`` on are not
        read.
    n_seeds : int array of shape (..., k)
        Finished seeds of each configuration, in seed order.

    Returns
    -------
    SeedNoise
        With ``pooled`` equal to the variance over all first seeds where no configuration has two:
        the configurations' own differences are then part of it, so it is too large, never too
        small.

    Notes
    -----
    Residuals of ``value = configuration + seed``, fitted by alternating means. The prior degrees
    of freedom match the spread of the own variances by moments, within [4, 60].
    """
    repeated = np.where(n_seeds >= 2, n_seeds, 0)
    mask = np.arange(values.shape[-1]) < repeated[..., None]
    squares = _residual_squares(np.where(mask, values, 0.0), mask)
    raw = np.maximum(repeated - 1, 0).astype(np.float64)
    total = raw.sum(-1)
    seeds_used = mask.any(-2).sum(-1)
    pooled_dof = np.maximum(total - np.maximum(seeds_used - 1, 0), 0.0)
    own_dof = raw * (pooled_dof / np.maximum(total, 1.0))[..., None]
    own = np.where(own_dof > 0.0, squares / np.maximum(own_dof, 1e-9), 0.0)
    pooled = np.where(
        pooled_dof > 0.0,
        squares.sum(-1) / np.maximum(pooled_dof, 1.0),
        _spread_of_first_seeds(values, n_seeds),
    )
    return SeedNoise(own, own_dof, pooled, pooled_dof, _prior_dof(own, own_dof, pooled))


def _residual_squares(values: FloatArray, mask: BoolArray) -> FloatArray:
    per_row = np.maximum(mask.sum(-1, keepdims=True), 1)
    per_seed = np.maximum(mask.sum(-2, keepdims=True), 1)
    seed = np.zeros_like(values[..., :1, :])
    for _ in range(_SWEEPS):
        row = ((values - seed) * mask).sum(-1, keepdims=True) / per_row
        seed = ((values - row) * mask).sum(-2, keepdims=True) / per_seed
    row = ((values - seed) * mask).sum(-1, keepdims=True) / per_row
    return np.asarray((((values - row - seed) * mask) ** 2).sum(-1))


def _spread_of_first_seeds(values: FloatArray, n_seeds: NDArray[np.intp]) -> FloatArray:
    started = n_seeds >= 1
    count = np.maximum(started.sum(-1), 1)
    first = np.where(started, values[..., 0], 0.0)
    centre = first.sum(-1, keepdims=True) / count[..., None]
    return np.asarray(
        (np.where(started, first - centre, 0.0) ** 2).sum(-1) / np.maximum(count - 1, 1)
    )


def _prior_dof(own: FloatArray, dof: FloatArray, pooled: FloatArray) -> FloatArray:
    safe = np.maximum(dof, 1e-9)
    scaled = own / np.where(pooled > 0.0, pooled, 1.0)[..., None]
    excess = np.where(dof > 0.0, (scaled - 1.0) ** 2 - 2.0 / safe, 0.0)
    share = dof / np.maximum(dof.sum(-1, keepdims=True), 1e-9)
    return np.asarray(np.clip(2.0 / np.maximum((share * excess).sum(-1), 1e-3), *_PRIOR_DOF))
