"""The eliminator: a pruner whose error rate holds at any time and with any number of workers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from trueup.arguments import check_one_of
from trueup.decide.race import RaceRule, Variance
from trueup.user_warning import warn_user
from trueup_optuna.study.study_state import (
    REPORTS,
    RULE,
    PinnedStudies,
    pin,
    sign,
    single_objective,
)
from trueup_optuna.study.trial_state import (
    BY,
    ELIMINATED,
    LOG_E,
    STATUS,
    Reports,
    configurations,
    finished_values,
    is_feasible,
    value_table,
)

FloatArray = NDArray[np.float64]


class SeedRacePruner(optuna.pruners.BasePruner):
    """Eliminate a configuration once the shared seeds prove that another one is better.

    Parameters
    ----------
    n_configs : int or None
        Planned number of configurations. Later trials are neither eliminated nor do they eliminate
        (one warning). None: unknown; the j-th comparator gets ``1 / (j (j + 1))`` of alpha.
    alpha : float, default 0.05
        Probability, at most, that a configuration which no other beats is ever eliminated.
    epsilon : float, default 0.0
        Also eliminate configurations that are better than the eliminator by no more than this.
    variance : {"moderated", "own"}, default "moderated"
        "own": proved under normal noise. "moderated": needs fewer seeds; its error rate is
        simulated.
    reports : {"running_mean", "value"}, default "running_mean"
        What the objective reports at step k: the mean over seeds 0 to k, or the result of seed k.

    Notes
    -----
    For challenger c and comparator b the differences on the shared seeds, in seed order, are one
    fixed sequence, so the bound (Ville's inequality per pair, a union over comparators) is on its
    supremum: it holds for any stopping time, order of arrival, number of workers and choice of what
    to train next. It assumes that a result depends on configuration and seed alone, and covers the
    noise of the seeds on the given validation rows, not the choice of those rows. A configuration
    is only eliminated by one that isn't eliminated itself, so at least one always survives.

    An objective should *return* its mean when ``should_prune()`` says so, as
    :class:`trueup_optuna.SeedObjective` does: the Gaussian-process sampler ignores pruned trials
    and would propose the same bad regions again.

    Examples
    --------
    >>> import optuna
    >>> from trueup_optuna import SeedRacePruner
    >>> study = optuna.create_study(pruner=SeedRacePruner(n_configs=60))
    """

    def __init__(
        self,
        n_configs: int | None,
        alpha: float = 0.05,
        epsilon: float = 0.0,
        variance: Variance = "moderated",
        reports: Reports = "running_mean",
    ) -> None:
        check_one_of("reports", reports, ("running_mean", "value"), "Check the spelling.")
        self.rule = RaceRule(n_configs, alpha, epsilon, variance)
        self.reports: Reports = reports
        self._begin()

    def _begin(self) -> None:
        self._finished: WeakKeyDictionary[BaseStorage, dict[int, FloatArray]] = WeakKeyDictionary()
        self._pinned = PinnedStudies()
        self._warned = False

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in asdict(self.rule).items())
        return f"SeedRacePruner({arguments}, reports={self.reports!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"rule": self.rule, "reports": self.reports}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def pin(self, study: optuna.Study) -> None:
        """Keep the rule in the study; refuse a study that was begun with another one.

        Raises
        ------
        StateMismatchError
            If alpha, epsilon, n_configs, variance or reports differ.
        """
        if study not in self._pinned:
            single_objective(study)
            pin(study, {RULE: asdict(self.rule), REPORTS: self.reports})
            self._pinned.add(study)

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Say whether the trial is eliminated, and by whom in its user attributes."""
        self.pin(study)
        if trial.user_attrs.get(STATUS) == ELIMINATED:
            return True
        runners = configurations(study.get_trials(deepcopy=False))
        numbers = [runner.number for runner in runners]
        challenger = numbers.index(trial.number)
        limit = self.rule.n_configs
        if limit is not None and challenger >= limit:
            self._warn_late(trial.number, limit)
            return False
        runners = runners[:limit]
        evidence = self._evidence(study, runners, challenger)
        strongest = int(evidence.argmax())
        if evidence[strongest] < -np.log(self.rule.alpha):
            return False
        return _eliminate(study, trial, numbers[strongest], float(evidence[strongest]))

    def _evidence(
        self, study: optuna.Study, runners: list[FrozenTrial], challenger: int
    ) -> FloatArray:
        finished = self._finished.setdefault(study._storage, {})
        table, n_seeds = value_table([self._values(finished, runner) for runner in runners])
        evidence = self.rule.log_evidence(sign(study) * table, n_seeds, challenger)
        alive = np.array([_is_alive(runner) for runner in runners])
        return np.where(alive, evidence, -np.inf)

    def _values(self, finished: dict[int, FloatArray], runner: FrozenTrial) -> FloatArray:
        known = finished.get(runner._trial_id)
        if known is not None:
            return known
        failed = runner.state == TrialState.FAIL
        steps = {} if failed else runner.intermediate_values
        values = finished_values(steps, self.reports)
        if runner.state.is_finished():
            finished[runner._trial_id] = values
        return values

    def _warn_late(self, number: int, limit: int) -> None:
        if not self._warned:
            self._warned = True
            warn_user(
                f"trial {number} comes after the {limit} configurations that alpha was "
                "divided among: it and later ones are neither eliminated nor do they eliminate."
            )


def _is_alive(trial: FrozenTrial) -> bool:
    out = trial.user_attrs.get(STATUS) == ELIMINATED
    return trial.state != TrialState.FAIL and not out and is_feasible(trial)


def _eliminate(study: optuna.Study, trial: FrozenTrial, by: int, log_e: float) -> bool:
    """Mark the trial, unless another worker has eliminated everybody else meanwhile."""

    def mark(status: str | None) -> None:
        study._storage.set_trial_user_attr(trial._trial_id, STATUS, status)

    study._storage.set_trial_user_attr(trial._trial_id, BY, by)
    study._storage.set_trial_user_attr(trial._trial_id, LOG_E, log_e)
    mark(ELIMINATED)
    if any(_is_alive(other) for other in configurations(study.get_trials(deepcopy=False))):
        return True
    mark(None)
    return False
