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


def as_executor(executor: Any) -> Executor | None:
    """Return what can run a function elsewhere; a session of Spark has no ``submit`` of its own.

    Raises
    ------
    InvalidInputError
        If it has no ``submit`` and isn't a session.
    """
    if executor is None or callable(getattr(executor, "submit", None)):
        return executor  # type: ignore[no-any-return]
    if hasattr(executor, "sparkContext"):
        return _OnSpark(executor)
    raise InvalidInputError(
        "executor must have a method submit",
        repr(executor),
        "Pass the Client of your cluster, a SparkSession, or an executor of concurrent.futures.",
    )


@dataclass(frozen=True)
class _OnSpark:
    """Each function is a job of one task."""

    session: Any

    def submit(self, function: Any, *arguments: Any) -> _SparkJob:
        """Return a job, which begins when its result is asked for: threads wait for one each."""
        return _SparkJob(self.session, function, arguments)


@dataclass(frozen=True)
class _SparkJob:
    session: Any
    function: Any
    arguments: tuple[Any, ...]

    def result(self) -> Any:
        """Run the function on a worker and return its result, or raise what it raised."""
        call, arguments = self.function, self.arguments
        one = self.session.sparkContext.parallelize([None], 1)
        ((found, error),) = one.map(lambda _: _attempt(call, arguments)).collect()
        if error is not None:
            raise error
        return found


def _attempt(call: Any, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Return the result or the exception itself: Spark would try again, and raise its own."""
    try:
        return call(*arguments), None
    except Exception as error:  # whatever a training raises is raised again where it is awaited
        return None, error


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
