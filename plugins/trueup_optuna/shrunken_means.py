"""How to spend a budget of trainings: what a configuration is worth, and how many go to the finals.

A configuration's mean over few seeds is noisy, but its neighbours say something about it too. A
Gaussian process over all results draws each mean to its neighbourhood, the more the fewer seeds it
has, and tells what a seed does to all configurations from what it does to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST = 0.3
"""Largest share of the budget for the finals."""
FINALISTS = 0.25
"""Share of the configurations whose spread the noise is compared with: those near the best."""
FEW = 6
"""Configurations from which on their neighbourhood says something."""
_SWEEPS = 2
_ENOUGH = 4
"""Configurations with two seeds from which on the better half of them shows the noise."""
_JITTER = 1e-8


@dataclass(frozen=True)
class Results:
    """Results of trainings; every array may be empty."""

    points: FloatArray  # shape (k, d): the configurations in the unit cube
    config: IntArray  # shape (n,): which of them was trained
    seed: IntArray  # shape (n,): under which seed
    value: FloatArray  # shape (n,): what came out, lower = better

    @property
    def n_seeds(self) -> IntArray:
        """Results of each configuration, shape (k,)."""
        return np.bincount(self.config, minlength=len(self.points))

    @property
    def means(self) -> FloatArray:
        """Mean of each configuration, infinite without a result."""
        total = np.bincount(self.config, self.value, minlength=len(self.points))
        return np.where(self.n_seeds > 0, total / np.maximum(self.n_seeds, 1), np.inf)


@dataclass(frozen=True)
class Shrunken:
    """What configurations are worth, their neighbours considered."""

    mean: FloatArray  # shape (k,): posterior mean of each configuration's true mean, lower = better
    sd: FloatArray  # shape (k,): posterior standard deviation
    # variance of a single result over seeds, without what a seed does to all configurations
    noise: float


@dataclass(frozen=True)
class _Kernel:
    """What the process is made of, in the scale of the results."""

    length: float = 0.6  # distance over which neighbours resemble each other
    signal: float = 0.6  # variance between distant configurations
    own: float = 0.1  # share of it that a configuration has for itself
    shared: float = 0.0  # share of the noise that is what a seed does to all configurations


_GRID: dict[str, tuple[float, ...]] = {
    "length": (0.2, 0.35, 0.6, 1.0, 1.7),
    "signal": (0.2, 0.6, 1.8),
    "own": (0.02, 0.1, 0.3),
    "shared": (0.0, 0.3, 0.6, 0.9, 0.99),
}


def shrunken_means(results: Results) -> Shrunken:
    """Draw means to their neighbourhood.

    A mean further above the median than the best lies below it is taken to lie as far: how bad a
    failure is says nothing about the best.

    The process has a squared exponential kernel, an effect of each configuration of its own, so
    that many seeds outweigh all neighbours, and one of each seed. Its noise is that of the better
    half of the configurations with two seeds: bad ones are often noisier by far. The rest maximises
    the marginal likelihood on a grid, one after the other. All configurations take part: without
    the worse half, the luckier ones of the others would be left.
    """
    parts = results.points, results.config, results.seed, results.value
    return _shrunken(results.points.shape, *(part.tobytes() for part in parts))


@lru_cache(maxsize=8)
def _shrunken(
    shape: tuple[int, int], points: bytes, config: bytes, seed: bytes, value: bytes
) -> Shrunken:
    """Return what is asked for several times a trial, about the same results."""
    results = Results(
        np.frombuffer(points).reshape(shape),
        np.frombuffer(config, dtype=np.intp),
        np.frombuffer(seed, dtype=np.intp),
        np.frombuffer(value),
    )
    means = results.means
    known = means[np.isfinite(means)]
    if len(known) >= FEW:
        highest = 2.0 * float(np.median(known)) - known.min()
        above = np.maximum(means - highest, 0.0)[results.config]
        if np.ptp(np.minimum(known, highest)) > 0.0:
            return _Process(replace(results, value=results.value - above)).shrunken()
    noise = _noise_near_best(results)
    return Shrunken(means, np.sqrt(noise / np.maximum(results.n_seeds, 1)), noise)


def _noise_near_best(results: Results) -> float:
    """Return the variance over seeds, of all results where no configuration has two."""
    means, n_seeds = results.means, results.n_seeds
    repeated = np.flatnonzero(n_seeds > 1)
    if len(repeated) == 0:
        return float(results.value.var()) if len(results.value) else 0.0
    if len(repeated) >= _ENOUGH:
        repeated = repeated[means[repeated] <= np.median(means[repeated])]
    inside = np.isin(results.config, repeated)
    away = (results.value - means[results.config])[inside]
    return float((away**2).sum() / (n_seeds[repeated] - 1).sum())


class _Process:
    """The Gaussian process over results."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.centre = float(np.median(results.value))
        self.scale = float(results.value.std())
        self.target = (results.value - self.centre) / self.scale
        self.noise = _noise_near_best(results) / self.scale**2
        self.squares = ((results.points[:, None, :] - results.points) ** 2).sum(-1)
        self.same_seed = results.seed[:, None] == results.seed

    def _prior(self, kernel: _Kernel) -> FloatArray:
        """Return the covariance of the true means with each other, shape (k, k)."""
        near = np.exp(-0.5 * self.squares / kernel.length**2)
        return np.asarray(kernel.signal * (near + kernel.own * np.eye(len(near))))

    def _factor(self, kernel: _Kernel, prior: FloatArray) -> FloatArray:
        config = self.results.config
        covariance = prior[np.ix_(config, config)]
        covariance += kernel.shared * self.noise * self.same_seed
        own = (1.0 - kernel.shared) * self.noise + _JITTER
        covariance[np.diag_indices_from(covariance)] += own
        return np.asarray(cholesky(covariance, lower=True, check_finite=False))

    def _fit(self, kernel: _Kernel) -> float:
        try:
            lower = self._factor(kernel, self._prior(kernel))
        except LinAlgError:
            return -np.inf
        white = solve_triangular(lower, self.target, lower=True, check_finite=False)
        return float(-0.5 * white @ white - np.log(np.diag(lower)).sum())

    def _best_kernel(self) -> _Kernel:
        best = _Kernel()
        fits = {best: self._fit(best)}
        for name in list(_GRID) * _SWEEPS:
            for other in [replace(best, **{name: value}) for value in _GRID[name]]:
                if other not in fits:
                    fits[other] = self._fit(other)
            best = max(fits, key=fits.__getitem__)
        return best

    def shrunken(self) -> Shrunken:
        kernel = self._best_kernel()
        prior = self._prior(kernel)
        lower = self._factor(kernel, prior)
        weights = cho_solve((lower, True), self.target)
        with_results = prior[:, self.results.config]
        half = solve_triangular(lower, with_results.T, lower=True, check_finite=False)
        left = np.maximum(np.diag(prior) - (half**2).sum(0), 0.0)
        mean = self.centre + self.scale * (with_results @ weights)
        return Shrunken(
            np.where(self.results.n_seeds > 0, mean, np.inf),
            self.scale * np.sqrt(left),
            float((1.0 - kernel.shared) * self.noise * self.scale**2),
        )


def noise_share(means: FloatArray, noise: float) -> float:
    """Return the noise of one seed, as a share of itself and the spread near the best.

    ``means`` of shape (k,), lower = better; ``noise`` is the variance of a single result over
    seeds. 0 = the seed changes nothing, 1 = configurations near the best can't be told apart.
    """
    finite = np.sort(means[np.isfinite(means)])
    near = finite[: max(3, int(np.ceil(FINALISTS * len(finite))))]
    spread = float(near.var()) if len(near) > 1 else 0.0
    return noise / (noise + spread) if noise > 0.0 else 0.0


def final_share(noise_share: float) -> float:
    """Return the share of the budget for the finals: none without noise, at most ``MOST``.

    It grows with the square: where configurations differ by more than the noise, new ones are worth
    more than further seeds.
    """
    return MOST * noise_share**2


def unit_cube(trials: tuple[FrozenTrial, ...]) -> FloatArray:
    """Return the parameters of trials as points, shape (k, d): numbers from 0 to 1.

    Logarithmic parameters by their logarithm, a choice as a column of each value, a parameter that
    a trial doesn't have as the middle.
    """
    spaces: dict[str, BaseDistribution] = {}
    for trial in trials:
        spaces.update(trial.distributions)
    columns = [_columns(name, spaces[name], trials) for name in sorted(spaces)]
    return np.concatenate([np.zeros((len(trials), 0)), *columns], axis=1)


def _columns(name: str, space: BaseDistribution, trials: tuple[FrozenTrial, ...]) -> FloatArray:
    values = [trial.params.get(name) for trial in trials]
    if isinstance(space, CategoricalDistribution):
        chosen = [[value == choice for choice in space.choices] for value in values]
        return np.asarray(np.array(chosen, dtype=np.float64) / np.sqrt(2.0))
    low, high = float(getattr(space, "low", 0.0)), float(getattr(space, "high", 1.0))
    read = np.log if getattr(space, "log", False) else np.asarray
    known = np.array([np.nan if value is None else float(value) for value in values])
    width = float(read(high) - read(low))
    scaled = (read(known) - read(low)) / width if width > 0.0 else np.zeros_like(known)
    return np.where(np.isnan(scaled), 0.5, scaled)[:, None]
