"""The seed race: whether a configuration may be eliminated, and by whom, under the noise of seeds.

A challenger meets every comparator on the seeds that both have finished, in seed order. Each pair
has its own e-process, each comparator its fixed share of ``alpha``. Arrays may have leading axes,
along which everything is done independently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_fraction, check_one_of, is_real, whole_number
from trueup.decide.e_process import log_evidence_known_variance, log_evidence_student
from trueup.errors import InvalidInputError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_SWEEPS = 4
_PRIOR_DOF = (4.0, 60.0)
_INFLATION = 2.5


@dataclass(frozen=True)
class SeedNoise:
    """Variance over seeds, with the effect that a seed has on all configurations removed.

    ``own`` (..., k) is the variance of each configuration from its own seeds, in squared units of
    the metric, 0 without any; ``pooled`` (...,) that over all of them; each has its degrees of
    freedom. ``prior_dof`` (...,) is what the pool is worth in a moderated variance.
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

    ``values`` (..., k, s) has the result of each configuration under each seed index, of which the
    first ``n_seeds`` (..., k) are read. Where no configuration has two seeds ``pooled`` is the
    variance over all first ones: the configurations' own differences are then part of it, so it is
    too large, never too small.

    Notes
    -----
    Residuals of ``value = configuration + seed``, fitted by alternating means. The prior degrees of
    freedom match the spread of the own variances by moments, within [4, 60].
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


IntArray = NDArray[np.intp]
Variance = Literal["moderated", "own"]

MIN_SHARED_SEEDS = 2
MIN_POOLED_DOF = 8.0


@dataclass(frozen=True)
class RaceRule:
    """What a race promises and how it keeps it, in the words of ``SeedRacePruner``.

    With probability ``alpha`` at most, a configuration that no other beats is ever eliminated,
    unless by one that is worse by no more than ``epsilon``, in units of the metric. Where
    ``n_configs`` is not known, the j-th comparator to arrive gets the share ``1 / (j (j + 1))`` of
    alpha. The variance "own" uses the differences of the pair alone: proved under normal noise,
    without power below six shared seeds at 60 configurations. "moderated" borrows strength from all
    configurations: its error rate is simulated, not proved.
    """

    n_configs: int | None
    alpha: float = 0.05
    epsilon: float = 0.0
    variance: Variance = "moderated"

    def __post_init__(self) -> None:
        if self.n_configs is not None:
            fix = "Give the number of trials that you plan, or None."
            object.__setattr__(self, "n_configs", whole_number("n_configs", self.n_configs, 2, fix))
        check_fraction("alpha", self.alpha, "Use 0.05 for one error in twenty.")
        if not is_real(self.epsilon) or not 0.0 <= self.epsilon < np.inf:
            raise InvalidInputError(
                "epsilon must be finite and at least 0",
                repr(self.epsilon),
                "Give it in units of the metric.",
            )
        for name in ("alpha", "epsilon"):  # plain numbers: a study keeps them as JSON
            object.__setattr__(self, name, float(getattr(self, name)))
        check_one_of("variance", self.variance, ("moderated", "own"), "Check the spelling.")

    def log_share(self, k: int, challenger: int) -> FloatArray:
        """Return the log of the share of alpha of each of ``k`` comparators."""
        if self.n_configs is not None:
            return np.full(k, -np.log(self.n_configs - 1.0))
        arrival = np.arange(k, dtype=np.float64)
        arrival[: challenger + 1] += 1.0
        return np.asarray(-np.log(arrival * (arrival + 1.0)))

    def log_evidence(
        self, values: FloatArray, n_seeds: IntArray, challenger: int, noise: SeedNoise | None = None
    ) -> FloatArray:
        """Return log(share x e-value) against the challenger, for each comparator, (..., k).

        ``values`` (..., k, s) are the results, lower = better, of the configurations in order of
        arrival, of which the first ``n_seeds`` (..., k) are read; ``challenger`` is the row on
        trial. A comparator eliminates it when this reaches ``log(1 / alpha)``; minus infinity where
        the pair shares fewer than two seeds or the variance is not known well enough.
        """
        shared = np.minimum(n_seeds[..., challenger, None], n_seeds)
        allowed = (shared >= MIN_SHARED_SEEDS) & (np.arange(values.shape[-2]) != challenger)
        difference = values[..., challenger, None, :] - values + self.epsilon
        difference = np.where(np.arange(values.shape[-1]) < shared[..., None], difference, 0.0)
        total = difference.sum(-1)
        if self.variance == "own":
            evidence = log_evidence_student(total, (difference**2).sum(-1), shared)
        else:
            noise = seed_noise(values, n_seeds) if noise is None else noise
            allowed &= (noise.pooled_dof >= MIN_POOLED_DOF)[..., None]
            variance = noise.cautious[..., challenger, None] + noise.cautious
            allowed &= variance > 0.0
            scale = np.sqrt(np.where(variance > 0.0, variance, 1.0))
            evidence = log_evidence_known_variance(total / scale, shared)
        share = self.log_share(values.shape[-2], challenger)
        return np.asarray(np.where(allowed, evidence + share, -np.inf))
