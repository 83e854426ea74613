"""The trial that ``train`` gets in finals and confirmation, here or on the workers of a cluster.

It has all that a trial of the search has, but the choice of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import FixedTrial, FrozenTrial

from trueup.executor import Executor
from trueup_optuna.scoring import SeedScorer
from trueup_optuna.study.trial_state import SeedRecord

_OWN = "trueup:"


class RaceTrial(FixedTrial):
    """A ``FixedTrial`` with the study, the number and the user attributes of the search.

    Callbacks of libraries ask for them. Reports are ignored, and ``should_prune`` says no. Without
    an ``origin``, for a configuration that the search never met, the number is the one that comes
    next. The storage keeps the training under ``trial_id``.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        study: optuna.Study,
        origin: FrozenTrial | None = None,
        trial_id: int | None = None,
    ) -> None:
        number = len(study.get_trials(deepcopy=False)) if origin is None else origin.number
        super().__init__(dict(params), number=number)
        self.study: Any = study
        self.storage: Any = study._storage
        self._trial_id = trial_id
        self.given: dict[str, Any] = {}
        """User attributes that this training has set."""
        if origin is not None:
            kept = origin.user_attrs.items()
            self._user_attrs.update({key: v for key, v in kept if not key.startswith(_OWN)})

    @classmethod
    def away(cls, trial: RaceTrial, study: Any) -> RaceTrial:
        """Return a copy that can travel, without storage and with a study that stays behind."""
        copy = cls.__new__(cls)
        FixedTrial.__init__(copy, dict(trial._params), number=trial.number)
        copy.study, copy.storage, copy._trial_id = study, None, None
        copy._user_attrs, copy.given = dict(trial._user_attrs), {}
        return copy

    @property
    def relative_params(self) -> dict[str, Any]:
        """Parameters that a sampler drew together: none, since all are fixed."""
        return {}

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep an attribute of this training."""
        super().set_user_attr(key, value)
        self.given[key] = value

    @property
    def violates(self) -> bool:
        return any(value > 0.0 for value in self.constraints.values())


@dataclass(frozen=True)
class DetachedStudy:
    """What a training elsewhere may ask of its study, which stays where it is."""

    study_name: str
    direction: StudyDirection
    directions: tuple[StudyDirection, ...]
    user_attrs: dict[str, Any]


def score_seed(
    score: SeedScorer, trial: RaceTrial, seed: int, executor: Executor | None
) -> SeedRecord:
    """Return the result of a training, here or elsewhere; the trial keeps what it was given."""
    if executor is None:
        return score(trial, seed)
    study = trial.study
    stays = DetachedStudy(
        study.study_name, study.direction, tuple(study.directions), dict(study.user_attrs)
    )
    away = RaceTrial.away(trial, stays)
    record, given, constraints = executor.submit(
        _run, score, away, seed, _key(trial, seed)
    ).result()
    for key, value in given.items():
        trial.set_user_attr(key, value)
    for key, value in constraints.items():
        trial.set_constraint(key, value)
    return record  # type: ignore[no-any-return]


def _key(trial: RaceTrial, seed: int) -> str:
    """Return a name of this training, so that no client takes two calls for the same."""
    return f"{trial.study.study_name} {trial.number} {trial._trial_id} {seed}"


def _run(
    score: SeedScorer, trial: RaceTrial, seed: int, _key: str
) -> tuple[SeedRecord, dict[str, Any], dict[str, float]]:
    return score(trial, seed), trial.given, trial.constraints
