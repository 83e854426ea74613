"""Trainings under the seeds that only a confirmation may use."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.executor import Executor, as_executor
from trueup.user_warning import warn_user
from trueup_optuna.final.race_trial import RaceTrial, score_seed
from trueup_optuna.scoring import FailedSeedError, RowCheck, SeedScorer
from trueup_optuna.study.companions import open_companion, pin_identity
from trueup_optuna.study.ranking import RECORD, SEED_INDEX
from trueup_optuna.study.study_state import goes_by, seeds_of
from trueup_optuna.study.trial_state import FAILED

_PARAMS = "trueup:params"


_USUAL = 5


def reserved_seeds(study: optuna.Study, n_seeds: int | None) -> tuple[int, ...]:
    """Return the first reserved seeds of a study: ``n_seeds``, or five and all where it has less.

    There must be two, and as many as asked for.
    """
    reserved = seeds_of(study).reserved
    asked = max(2, min(_USUAL, len(reserved))) if n_seeds is None else n_seeds
    if asked > len(reserved):
        use_all = f"Pass n_seeds={len(reserved)}, or begin" if len(reserved) > 1 else "Begin"
        raise InvalidInputError(
            f"n_seeds must be at most the {len(reserved)} seeds that the study reserved",
            str(asked),
            f"{use_all} the study with SeedList(n, confirm={max(asked, _USUAL)}).",
        )
    return reserved[:asked]


def kept_values(kept: optuna.Study, params: dict[str, Any]) -> dict[int, float | None]:
    """Return the result under each seed index that was trained, None where the training failed."""
    key = _key(params)
    trials = kept.get_trials(deepcopy=False)
    return {
        trial.user_attrs[SEED_INDEX]: trial.value
        for trial in trials
        if trial.user_attrs.get(_PARAMS) == key
    }


def _key(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=repr)


class FreshSeeds:
    """Trainings under the reserved seeds, each kept as one trial of ``<name>::confirm``."""

    def __init__(
        self,
        study: optuna.Study,
        score: SeedScorer,
        seeds: tuple[int, ...],
        executor: Executor | None,
    ) -> None:
        self.study, self.score, self.seeds = study, score, seeds
        self.executor = as_executor(executor)
        self._check_rows = RowCheck()
        pin_identity(study)
        self.kept = open_companion(study, "confirm")

    def values(self, params: dict[str, Any], origin: FrozenTrial | None) -> dict[int, float]:
        """Return the result under each seed index, without those that failed."""
        found = kept_values(self.kept, params)
        missing = [index for index in range(len(self.seeds)) if index not in found]
        trials = {index: RaceTrial(params, self.study, origin) for index in missing}
        found.update(zip(missing, self._train_all(trials, _key(params)), strict=True))
        return {i: v for i, v in found.items() if v is not None and i < len(self.seeds)}

    def _train_all(self, trials: dict[int, RaceTrial], key: str) -> list[float | None]:
        if self.executor is None or not trials:
            return [self._train(trial, key, index) for index, trial in trials.items()]
        with ThreadPoolExecutor(len(trials)) as pool:  # each thread waits for one training
            return list(pool.map(self._train, trials.values(), [key] * len(trials), trials))

    def _train(self, trial: RaceTrial, key: str, index: int) -> float | None:
        attributes: dict[str, Any] = {_PARAMS: key, SEED_INDEX: index}
        try:
            record = score_seed(self.score, trial, self.seeds[index], self.executor)
        except (FailedSeedError, optuna.TrialPruned) as failure:
            attributes[FAILED] = str(failure) or "pruned by train"
            self.kept.add_trial(create_trial(state=TrialState.FAIL, user_attrs=attributes))
            return None
        self._check_rows(self.kept, index, record)
        attributes |= {**trial.given, RECORD: record.to_attribute()}
        value = record.by(goes_by(self.study))
        self.kept.add_trial(create_trial(value=value, user_attrs=attributes))
        return value


def shared_seeds(
    seeds: tuple[int, ...], ours: dict[int, float], theirs: dict[int, float] | None
) -> tuple[list[int], tuple[int, ...]]:
    """Return the indices of the seeds that all have a result for, and the seeds that are left out.

    There must be two that all have.
    """
    kept = [i for i in range(len(seeds)) if i in ours and (theirs is None or i in theirs)]
    failed = tuple(seed for i, seed in enumerate(seeds) if i not in kept)
    if len(kept) < 2:
        raise UndefinedMetricError(
            f"at least two of the seeds {seeds} must give a result",
            f"{len(kept)}",
            "Find out why the trainings fail.",
        )
    if failed:
        warn_user(
            f"trainings under the seeds {failed} failed and are left out of the confirmation: the "
            "mean is optimistic where that isn't chance."
        )
    return kept, failed
