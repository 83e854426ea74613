"""The seed race: whether a configuration may be eliminated, and by whom.

A challenger meets every comparator on the seeds that both have finished, in seed order. Each pair
has its own e-process, each comparator its fixed share of ``alpha``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_fraction, check_one_of, is_real, whole_number
from trueup.decide.e_process import log_evidence_known_variance, log_evidence_student
from trueup.decide.noise import SeedNoise, seed_noise
from trueup.errors import InvalidInputError

FloatArray = NDArray[np.float64]
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
