"""What a study was begun with, kept in the study: it cannot be resumed with something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from trueup.decide.race import RaceRule
from trueup.errors import InvalidInputError, StateMismatchError
from trueup_optuna.seeds import SeedList
from trueup_optuna.shrunken_means import FEW
from trueup_optuna.study.trial_state import Metric, root_number, seed_records

SEEDS = "trueup:seeds"
METRIC = "trueup:metric"
SPLIT = "trueup:split"
RULE = "trueup:rule"
REPORTS = "trueup:reports"
BUDGET = "trueup:budget"
GOES_BY = "trueup:goes_by"
"""The metric that ranks configurations, "calibrated" or "vanilla"; absent = not chosen yet."""
GOES_BY_REASON = "trueup:goes_by_reason"
SEED_ORDER = "trueup:seed_order"
"""Whether each configuration begins at another seed, "turned", or all at the first, "same"."""


def pin(study: optuna.Study, attributes: Mapping[str, Any]) -> None:
    """Write the attributes that the study doesn't hold yet, and refuse those that differ."""
    known = study.user_attrs
    for key, value in attributes.items():
        if key not in known:
            study.set_user_attr(key, value)
        elif known[key] != value:
            name, begun, given = _difference(key, known[key], value)
            raise StateMismatchError(
                f"{name} must be what the study {study.study_name!r} was begun with, {begun!r}",
                repr(given),
                f"Resume with the same {name} or begin another study.",
            )


def _difference(key: str, begun: Any, given: Any) -> tuple[str, Any, Any]:
    """Return the name and both values of what differs: of a rule, its first such argument."""
    if key != RULE:
        return key.removeprefix("trueup:"), begun, given
    name = next(name for name in given if begun.get(name) != given[name])
    return name, begun.get(name), given[name]


class PinnedStudies:
    """The studies whose attributes were pinned in this process; a pickled copy begins empty."""

    def __init__(self) -> None:
        self._ids: WeakKeyDictionary[BaseStorage, set[int]] = WeakKeyDictionary()

    def __contains__(self, study: optuna.Study) -> bool:
        return study._study_id in self._ids.get(study._storage, ())

    def add(self, study: optuna.Study) -> None:
        self._ids.setdefault(study._storage, set()).add(study._study_id)

    def __reduce__(self) -> tuple[type[PinnedStudies], tuple[()]]:
        return PinnedStudies, ()


def single_objective(study: optuna.Study) -> None:
    """Refuse a study with several objectives."""
    if len(study.directions) != 1:
        raise InvalidInputError(
            "study must have a single objective",
            f"{len(study.directions)} directions",
            "A seed race needs one number per seed: create the study with direction=...",
        )


def check_direction(study: optuna.Study) -> None:
    """Refuse to maximise a loss."""
    if sign(study) < 0.0:
        raise InvalidInputError(
            "direction must be 'minimize' for a loss, which is lower where a model is better",
            "'maximize'",
            "Create another study, or let train return a number to maximize.",
        )


def sign(study: optuna.Study) -> float:
    """Return 1.0 where the study minimises and -1.0 where it maximises."""
    return -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0


def seeds_of(study: optuna.Study) -> SeedList:
    """Return the seeds that the study was begun with, by a SeedObjective."""
    kept = study.user_attrs.get(SEEDS)
    if kept is None:
        raise InvalidInputError(
            "study must have been run with a SeedObjective",
            f"{study.study_name!r} without seeds",
            "Optimize it with SeedObjective(train, seeds=SeedList(20)).",
        )
    return SeedList(len(kept["search"]), len(kept["confirm"]), (*kept["search"], *kept["confirm"]))


def goes_by(study: optuna.Study) -> Metric:
    """Return the metric of a study; with a budget it is vanilla until one is chosen."""
    return metric_of(study.user_attrs)


def metric_of(kept: Mapping[str, Any]) -> Metric:
    """Return the metric of a study with these attributes."""
    metric: Metric = kept.get(GOES_BY, "vanilla" if BUDGET in kept else "calibrated")
    return metric


def seed_position(study: optuna.Study, trial: FrozenTrial, index: int) -> int:
    """Return which seed of the search a configuration meets at this index.

    In turned order each begins at another seed, as soon as there are enough to tell what a seed
    does to all: noise that neighbours share under one seed then averages out among them. Those
    before begin at the same, but go on with different ones, or two seeds would stand for all.
    """
    kept = study.user_attrs
    n = len(kept[SEEDS]["search"])
    number = root_number(trial) if kept.get(SEED_ORDER) == "turned" else 0
    if number >= FEW:
        return int((number - FEW + 1 + index) % n)
    return 0 if index % n == 0 else int(1 + (index - 1 + number) % (n - 1))


def restore(trial: optuna.Trial, frozen: FrozenTrial) -> list[float]:
    """Return the finished seeds of a retried trial; report those that a crash left unreported."""
    assert frozen.state == TrialState.RUNNING
    metric = goes_by(trial.study)
    values = [record.by(metric) for record in seed_records(frozen.user_attrs)]
    for index in range(len(values)):
        if index not in frozen.intermediate_values:
            trial.report(float(np.mean(values[: index + 1])), index)
    return values


def seeds_fact(seeds: SeedList) -> dict[str, list[int]]:
    """Return the seeds in the form in which a study keeps them."""
    return {"search": list(seeds.search), "confirm": list(seeds.reserved)}


def rule_of(study: optuna.Study) -> RaceRule | None:
    """Return the rule that the study was begun with, or None where it has no seed race."""
    kept = study.user_attrs.get(RULE)
    return None if kept is None else RaceRule(**kept)
