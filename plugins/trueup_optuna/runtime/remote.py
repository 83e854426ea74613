"""Trainings elsewhere: on the workers of a cluster whose client can submit a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import optuna
from optuna.study import StudyDirection

from trueup.errors import InvalidInputError
from trueup_optuna.final.race_trial import RaceTrial
from trueup_optuna.scoring import SeedScorer
from trueup_optuna.study.trial_state import SeedRecord


class Future(Protocol):
    """What a client returns for a function that it has submitted."""

    def result(self) -> Any:
        """Wait for the function and return its result, or raise what it raised."""
        ...


class Executor(Protocol):
    """A ``distributed.Client``, an executor of ``concurrent.futures``, or anything like them."""

    def submit(self, function: Any, *arguments: Any) -> Future:
        """Run ``function(*arguments)`` somewhere."""
        ...


@dataclass(frozen=True)
class StudyFacts:
    """What a training elsewhere may ask of its study, which stays where it is."""

    study_name: str
    direction: StudyDirection
    directions: tuple[StudyDirection, ...]
    user_attrs: dict[str, Any]


def check_executor(executor: Any) -> None:
    """Refuse what can't run a function elsewhere.

    Raises
    ------
    InvalidInputError
        If it has no ``submit``.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InvalidInputError(
            "executor must have a method submit",
            repr(executor),
            "Pass the Client of your cluster, or an executor of concurrent.futures.",
        )


def score_seed(
    score: SeedScorer, trial: RaceTrial, seed: int, executor: Executor | None
) -> SeedRecord:
    """Return the result of a training, here or elsewhere; the trial keeps what it was given."""
    if executor is None:
        return score(trial, seed)
    facts = _facts(trial.study)
    away = RaceTrial.away(trial, facts)
    record, given, constraints = executor.submit(
        _run, score, away, seed, _key(trial, seed)
    ).result()
    for key, value in given.items():
        trial.set_user_attr(key, value)
    for key, value in constraints.items():
        trial.set_constraint(key, value)
    return record  # type: ignore[no-any-return]


def _facts(study: optuna.Study) -> StudyFacts:
    return StudyFacts(
        study.study_name, study.direction, tuple(study.directions), dict(study.user_attrs)
    )


def _key(trial: RaceTrial, seed: int) -> str:
    """Return a name of this training, so that no client takes two calls for the same."""
    return f"{trial.study.study_name} {trial.number} {trial._trial_id} {seed}"


def _run(
    score: SeedScorer, trial: RaceTrial, seed: int, _key: str
) -> tuple[SeedRecord, dict[str, Any], dict[str, float]]:
    return score(trial, seed), trial.given, trial.constraints
