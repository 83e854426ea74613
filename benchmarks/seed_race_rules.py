"""Rules that spend seeds on configurations, run on many tables of results at once.

A rule gets results of shape (replicates, configurations, seeds), lower = better, and returns a
``Choice``. The race uses the functions of ``trueup_optuna`` itself; the peers follow their
documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.decide.race import RaceRule, seed_noise
from trueup_optuna.final.allocation import next_training
from trueup_optuna.study.ranking import prefix_means

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

N_MAX = 20
_STARTUP_TRIALS, _STARTUP_SEEDS = 5, 3


@dataclass(frozen=True)
class Choice:
    """Per replicate: selected configuration, its claimed value, trainings, who was dropped."""

    selected: IntArray
    claimed: FloatArray
    trainings: IntArray
    dropped: BoolArray


Rule = Callable[[FloatArray], Choice]


def fixed_seeds(n: int) -> Rule:
    """Train every configuration under n seeds and take the lowest mean."""

    def rule(values: FloatArray) -> Choice:
        means = values[:, :, :n].mean(2)
        return _lowest(
            means, np.full(len(values), values.shape[1] * n), np.zeros(means.shape, bool)
        )

    return rule


def race(n_base: int, budget: int, alpha: float = 0.05, n_max: int = N_MAX) -> Rule:
    """Search with n_base seeds under the eliminator, then spend budget on the finals."""

    def rule(values: FloatArray) -> Choice:
        runners = _Runners(values[:, :, :n_max], RaceRule(values.shape[1], alpha))
        for config in range(values.shape[1]):
            wanted = max(n_base, _STARTUP_SEEDS) if config < _STARTUP_TRIALS else n_base
            for _ in range(min(wanted, n_max)):
                runners.train(np.full(len(values), config), first=config + 1)
        for _ in range(budget):
            runners.train(runners.next())
        return runners.choose()

    return rule


class _Runners:
    def __init__(self, values: FloatArray, rule: RaceRule) -> None:
        self.values, self.rule = values, rule
        self.n_seeds = np.zeros(values.shape[:2], dtype=np.intp)
        self.alive = np.ones(values.shape[:2], dtype=bool)

    def train(self, config: IntArray, first: int | None = None) -> None:
        """Give a seed to one configuration per replicate; let it meet the ``first`` ones."""
        rows = np.flatnonzero(config >= 0)
        rows = rows[self.alive[rows, config[rows]]]
        if len(rows) == 0:
            return
        config = config[rows]
        self.n_seeds[rows, config] += 1
        depth = int(self.n_seeds.max())
        # The challenger comes first, which is no matter: all comparators have the same share.
        order = np.argsort(
            np.arange(self.values.shape[1]) != config[:, None], axis=1, kind="stable"
        )
        order = order[:, :first]
        values = self.values[rows[:, None], order, :depth]
        evidence = self.rule.log_evidence(values, self.n_seeds[rows[:, None], order], 0)
        evidence = np.where(self.alive[rows[:, None], order], evidence, -np.inf)
        out = evidence.max(1) >= -np.log(self.rule.alpha)
        self.alive[rows[out], config[out]] = False

    def _means(self) -> tuple[FloatArray, FloatArray]:
        depth = int(self.n_seeds.max())
        values = self.values[:, :, :depth]
        return prefix_means(values, self.n_seeds), seed_noise(values, self.n_seeds).moderated

    def next(self) -> IntArray:
        return next_training(*self._means(), self.n_seeds, self.alive, self.values.shape[2])

    def choose(self) -> Choice:
        means, variance = self._means()
        score = means + np.sqrt(variance / np.maximum(self.n_seeds, 1))
        eligible = self.alive & (self.n_seeds >= 2)
        selected = np.where(eligible, score, np.inf).argmin(1)
        claimed = means[np.arange(len(means)), selected]
        return Choice(selected, claimed, self.n_seeds.sum(1), ~self.alive)


def median_pruner(n: int, n_startup_trials: int = 5) -> Rule:
    """Optuna's MedianPruner on running means: worse than the median of the complete trials."""

    def rule(values: FloatArray) -> Choice:
        running = np.cumsum(values[:, :, :n], 2) / np.arange(1, n + 1)
        complete = np.zeros(values.shape[:2], dtype=bool)
        trainings = np.zeros(len(values), dtype=np.intp)
        for config in range(values.shape[1]):
            alive = np.ones(len(values), dtype=bool)
            judged = complete.sum(1) >= n_startup_trials
            for step in range(n):
                trainings += alive
                past = np.where(complete, running[:, :, step], np.nan)
                past[~judged] = np.inf
                lowest = running[:, config, : step + 1].min(1)
                alive &= ~(lowest > np.nanmedian(past, axis=1))
            complete[:, config] = alive
        means = np.where(complete, running[:, :, -1], np.inf)
        return _lowest(means, trainings, ~complete)

    return rule


def signed_rank_p_value(difference: FloatArray) -> float:
    """Return the exact one-sided p-value of the signed-rank test that the median is <= 0."""
    n = len(difference)
    ranks = np.abs(difference).argsort().argsort() + 1
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1.0
    for rank in range(1, n + 1):
        counts[rank:] = counts[rank:] + counts[:-rank].copy()
    statistic = int(ranks[difference > 0].sum())
    return float(counts[statistic:].sum() / 2.0**n)


def wilcoxon_pruner(n: int, p_threshold: float = 0.1) -> Rule:
    """Optuna's WilcoxonPruner against the current best trial; a pruned trial returns its mean."""

    def rule(values: FloatArray) -> Choice:
        runs = [_wilcoxon_study(table, n, p_threshold) for table in values]
        return Choice(*(np.array(part) for part in zip(*runs, strict=True)))

    return rule


def _wilcoxon_study(
    table: FloatArray, n: int, p_threshold: float
) -> tuple[int, float, int, BoolArray]:
    counts = np.full(len(table), n)
    best, best_value = 0, table[0, :n].mean()
    for config in range(1, len(table)):
        for done in range(1, n + 1):
            shared = min(done, counts[best])
            better = best_value >= table[config, :done].mean()
            # Below four pairs the p-value can't be under 0.1, whatever the differences.
            if 2.0**-shared < p_threshold and not better:
                gap = table[config, :shared] - table[best, :shared]
                if signed_rank_p_value(gap) < p_threshold:
                    break
        counts[config] = done
        value = table[config, :done].mean()
        if value < best_value:
            best, best_value = config, value
    return best, best_value, int(counts.sum()), counts < n


def smac_like(n: int) -> Rule:
    """Racing without a test: meet the incumbent on 1, 2, 4, ... seeds, out on a worse mean."""

    def rule(values: FloatArray) -> Choice:
        runs = [_smac_study(table, n) for table in values]
        return Choice(*(np.array(part) for part in zip(*runs, strict=True)))

    return rule


def _smac_study(table: FloatArray, n: int) -> tuple[int, float, int, BoolArray]:
    counts = np.zeros(len(table), dtype=np.intp)
    dropped = np.zeros(len(table), dtype=bool)
    incumbent = 0
    counts[0] = 1
    for config in range(1, len(table)):
        counts[incumbent] = min(counts[incumbent] + 1, n)
        batch = 1
        while True:
            counts[config] = min(counts[incumbent], counts[config] + batch)
            shared = counts[config]
            if table[config, :shared].mean() > table[incumbent, :shared].mean():
                dropped[config] = True
                break
            if shared >= counts[incumbent]:
                dropped[incumbent], incumbent = True, config
                break
            batch *= 2
    claimed = table[incumbent, : counts[incumbent]].mean()
    return incumbent, float(claimed), int(counts.sum()), dropped


def _lowest(means: FloatArray, trainings: IntArray, dropped: BoolArray) -> Choice:
    selected = means.argmin(1)
    return Choice(selected, means[np.arange(len(means)), selected], trainings, dropped)
