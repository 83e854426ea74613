"""Where all configurations of a study stand: the seeds of the search and of the finals together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from trueup.decide.race import SeedNoise, seed_noise
from trueup.errors import UndefinedMetricError
from trueup_optuna.shrunken_means import Results, Shrunken, shrunken_means, unit_cube
from trueup_optuna.study.companions import companion
from trueup_optuna.study.study_state import BUDGET, REPORTS, metric_of, sign
from trueup_optuna.study.trial_state import (
    BY,
    ELIMINATED,
    FAILED,
    LOG_E,
    REPEAT_OF,
    STATUS,
    STOPPED_IN_EPOCH,
    Metric,
    Reports,
    SeedRecord,
    configurations,
    finished_values,
    is_feasible,
    padded,
    seed_records,
    value_table,
)

FloatArray = NDArray[np.float64]

CONFIG = "trueup:config"
SEED_INDEX = "trueup:seed_index"
RECORD = "trueup:record"
OUT = "trueup:out:"
"""Prefix of the finals' study attributes that say which configuration was eliminated there."""
DROPPED = "trueup:dropped:"
"""Prefix of those that say why a configuration left: a seed failed, or broke a constraint."""
CLOSED = "trueup:closed:"
"""Prefix of those that say why a configuration stays, but gets no further seed."""


@dataclass(frozen=True)
class Elimination:
    """Who eliminated a configuration: trial number, and the log of (share of alpha x e-value)."""

    by: int
    log_evidence: float


@dataclass(frozen=True)
class Ranking:
    """All configurations, in order of arrival."""

    trials: tuple[FrozenTrial, ...]  # the trial of each configuration
    # shape (k, s): result per seed index by the metric that the study goes by, times ``sign``:
    # lower is better; NaN where there is none
    values: FloatArray
    # shape (k, s): the same for the vanilla metric, NaN where ``train`` returned a number
    vanilla: FloatArray
    n_seeds: NDArray[np.intp]  # shape (k,): finished seeds, without a gap
    n_searched: NDArray[np.intp]  # shape (k,): those of them that the search trained
    # what was kept of each seed; empty where the objective was not a SeedObjective
    records: tuple[tuple[SeedRecord, ...], ...]
    eliminations: dict[int, Elimination]  # by the number of the eliminated trial
    # shape (k,): finished, feasible, neither eliminated nor dropped, with at least one seed
    contenders: NDArray[np.bool_]
    closed: NDArray[np.bool_]  # shape (k,): a seed of it failed, so it gets no further one
    sign: float  # 1.0 where the study minimises, else -1.0
    shrinks: bool = False  # whether the sampler is told shrunken means, as with a budget
    # configurations that a failed seed or a broken constraint took out of the finals
    n_dropped: int = 0

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return tuple(trial.number for trial in self.trials)

    @cached_property
    def means(self) -> FloatArray:
        """Mean over the finished seeds, times ``sign``; infinity without a seed."""
        return prefix_means(self.values, self.n_seeds)

    @cached_property
    def calibrated(self) -> FloatArray:
        """The calibrated results, as ``vanilla`` has the others; NaN where nothing was kept."""
        rows = [np.array([record.value for record in kept]) for kept in self.records]
        return self.sign * padded(rows, self.values.shape)

    @cached_property
    def noise(self) -> SeedNoise:
        return seed_noise(self.values, self.n_seeds)

    @cached_property
    def standard_errors(self) -> FloatArray:
        """Standard error of each mean, from the moderated variance."""
        return np.asarray(np.sqrt(self.noise.moderated / np.maximum(self.n_seeds, 1)))

    @cached_property
    def worth(self) -> Shrunken:
        """Each mean drawn to its neighbourhood, times ``sign``; infinity without a seed."""
        trained = np.flatnonzero(self.n_seeds)  # a trial that has just begun changes nothing
        seeds = [record.seed for kept in self.records for record in kept]
        place = {seed: index for index, seed in enumerate(dict.fromkeys(seeds))}
        found = shrunken_means(
            Results(
                unit_cube(tuple(self.trials[index] for index in trained)),
                np.repeat(np.arange(len(trained)), self.n_seeds[trained]),
                np.array([place[seed] for seed in seeds], dtype=np.intp),
                self.values[np.arange(self.values.shape[1]) < self.n_seeds[:, None]],
            )
        )
        mean, sd = np.full(len(self.trials), np.inf), np.zeros(len(self.trials))
        mean[trained], sd[trained] = found.mean, found.sd
        return Shrunken(mean, sd, found.noise)

    @property
    def score(self) -> FloatArray:
        """What ranks configurations, lower = better: the mean and a standard error."""
        return self.means + self.standard_errors

    @property
    def infeasible(self) -> int:
        """Number of configurations that break a constraint."""
        return sum(not is_feasible(trial) for trial in self.trials)

    def best(self) -> int:
        """Return the index of the contender with the lowest score.

        Raises UndefinedMetricError if no contender has two seeds: the best of single seeds is the
        luckiest.
        """
        eligible = self.contenders & (self.n_seeds >= 2)
        if not self.contenders.any() and self.infeasible:
            raise UndefinedMetricError(
                "study must hold a configuration that satisfies its constraints",
                f"{self.infeasible} that break one",
                "Search on, or relax them.",
            )
        if not self.contenders.any() and self.n_dropped:
            raise UndefinedMetricError(
                "study must hold a configuration without a failed seed",
                f"{self.n_dropped} that the finals dropped",
                "Mend train, and begin another study.",
            )
        if not eligible.any():
            raise UndefinedMetricError(
                "study must hold a finished configuration with at least two seeds",
                "none",
                "Run finals(study, train) or use n_base=2.",
            )
        return int(np.where(eligible, self.score, np.inf).argmin())


def prefix_means(values: FloatArray, n_seeds: NDArray[np.intp]) -> FloatArray:
    """Return the mean of each row's first ``n_seeds`` values, infinity where there are none."""
    mask = np.arange(values.shape[-1]) < n_seeds[..., None]
    total = np.where(mask, values, 0.0).sum(-1)
    return np.asarray(np.where(n_seeds > 0, total / np.maximum(n_seeds, 1), np.inf))


def ranking_of(study: optuna.Study, attempts: Sequence[FrozenTrial] | None = None) -> Ranking:
    """Collect the seeds of the search and of the finals, if there were any.

    ``attempts`` are all trials of the study, where they were read already.
    """
    attempts = study.get_trials(deepcopy=False) if attempts is None else attempts
    trials = tuple(configurations(attempts))
    race = companion(study, "finals")
    extra = {} if race is None else _extra_records(race)
    pinned = study.user_attrs  # a query of its own
    reports = pinned.get(REPORTS, "running_mean")
    metric = metric_of(pinned)
    results, vanilla, kept, n_searched = [], [], [], []
    for trial in trials:
        records, own = _searched(trial, reports, metric)
        n_searched.append(len(own))
        more = _continued(extra.get(trial.number, {}), len(own))
        results.append(np.concatenate([own, [record.by(metric) for record in more]]))
        kept.append((*records, *more))
        values = [record.vanilla for record in kept[-1]]
        vanilla.append(np.array([np.nan if value is None else value for value in values]))
    table, n_seeds = value_table(results)
    marks = {} if race is None else race.user_attrs
    eliminations = _eliminations(trials, marks)
    dropped = _numbers(marks, DROPPED)
    gone = set(eliminations) | dropped
    closed = _numbers(marks, CLOSED) | {t.number for t in trials if FAILED in t.user_attrs}
    contenders = [_contends(trial) and trial.number not in gone for trial in trials]
    return Ranking(
        trials,
        sign(study) * table,
        sign(study) * padded(vanilla, table.shape),
        n_seeds,
        np.array(n_searched, dtype=np.intp),
        tuple(kept),
        eliminations,
        np.array(contenders, dtype=bool) & (n_seeds > 0),
        np.array([trial.number in closed for trial in trials], dtype=bool),
        sign(study),
        shrinks=BUDGET in pinned,
        n_dropped=len(dropped),
    )


def _searched(
    trial: FrozenTrial, reports: Reports, metric: Metric
) -> tuple[tuple[SeedRecord, ...], FloatArray]:
    """Return what the search kept of a trial's seeds, and their results."""
    steps = {} if _is_void(trial) else trial.intermediate_values
    records = seed_records(trial.user_attrs) if steps else ()
    if len(records) == len(steps):
        return records, np.array([record.by(metric) for record in records])
    own = finished_values(steps, reports)
    return records[: len(own)], own


def _is_void(trial: FrozenTrial) -> bool:
    """Say whether the seeds of a trial don't count: it failed, or an earlier one has the same."""
    return trial.state == TrialState.FAIL or REPEAT_OF in trial.user_attrs


def _contends(trial: FrozenTrial) -> bool:
    stopped = trial.user_attrs.get(STATUS) == STOPPED_IN_EPOCH
    return trial.state == TrialState.COMPLETE and is_feasible(trial) and not stopped


def _numbers(marks: Mapping[str, Any], prefix: str) -> set[int]:
    """Return the numbers of the trials about which the finals keep an attribute."""
    return {int(key.removeprefix(prefix)) for key in marks if key.startswith(prefix)}


def _extra_records(race: optuna.Study) -> dict[int, dict[int, SeedRecord]]:
    extra: dict[int, dict[int, SeedRecord]] = {}
    for trial in race.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        kept = trial.user_attrs
        record = SeedRecord(**kept[RECORD])
        extra.setdefault(kept[CONFIG], {}).setdefault(kept[SEED_INDEX], record)
    return extra


def _continued(extra: dict[int, SeedRecord], start: int) -> list[SeedRecord]:
    """Return the records from ``start`` to the first gap: only a prefix may enter the race."""
    found: list[SeedRecord] = []
    while start + len(found) in extra:
        found.append(extra[start + len(found)])
    return found


def _eliminations(
    trials: tuple[FrozenTrial, ...], marks: Mapping[str, Any]
) -> dict[int, Elimination]:
    found = {
        trial.number: Elimination(trial.user_attrs[BY], trial.user_attrs[LOG_E])
        for trial in trials
        if trial.user_attrs.get(STATUS) == ELIMINATED
    }
    for key, value in marks.items():
        if key.startswith(OUT) and value is not None:
            found.setdefault(int(key.removeprefix(OUT)), Elimination(value["by"], value["log_e"]))
    return found
