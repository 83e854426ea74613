"""A budget of trainings, split between search and finals as the noise of the seeds demands.

The search begins with one seed a configuration. A few promising ones get a second one, and all that
get it, from the first to the last, tell how much seeds matter against configurations near the best:
that decides what is left for the finals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from trueup.arguments import whole_number
from trueup.errors import StateMismatchError
from trueup_optuna.metric import choose_metric
from trueup_optuna.pruner import SeedRacePruner
from trueup_optuna.shrunken_means import MOST, final_share, noise_share
from trueup_optuna.study.companions import open_companion
from trueup_optuna.study.ranking import CONFIG, RECORD, SEED_INDEX, ranking_of
from trueup_optuna.study.study_state import BUDGET, SEED_ORDER, goes_by, pin
from trueup_optuna.study.trial_state import (
    FAILED,
    REPEAT_OF,
    STATUS,
    STOPPED_IN_EPOCH,
    SeedRecord,
    has_seeds,
)
from trueup_optuna.tuning_samplers import suggest

_EARLY = 8
"""Configurations among which the better half gets a second seed."""
_LATE = 10 * _EARLY
"""Trials from which on none can be among them, however many failed."""
_REPEATS = 3
"""Repeated configurations after which seeds that change nothing need no more of them."""
_NEGLIGIBLE = 0.01
_IDLE = 20
"""Trials in a row without a training after which the sampler has nothing else to propose."""
_LEAST = 10


class Spending:
    """Where a study that was begun with ``SeedObjective(budget=...)`` stands."""

    def __init__(self, study: optuna.Study) -> None:
        self.budget = int(study.user_attrs[BUDGET])
        trials = study.get_trials(deepcopy=False)
        self.table = ranking_of(study, trials)
        self._lost = sum(_is_lost(trial) for trial in trials)
        self._failed_repeats = {
            t.user_attrs.get(REPEAT_OF) for t in trials if FAILED in t.user_attrs
        }

    @property
    def searched(self) -> int:
        """Trainings of the search, those that gave no result included."""
        return int(self.table.n_searched.sum()) + self._lost

    @property
    def spent(self) -> int:
        return int(self.table.n_seeds.sum()) + self._lost

    def same_as(self, params: Mapping[str, Any], but: int) -> int | None:
        """Return the number of another trial with the same parameters that has a seed."""
        for trial, n in zip(self.table.trials, self.table.n_seeds, strict=True):
            if n > 0 and trial.number != but and trial.params == params:
                return trial.number
        return None

    def n_seeds(self, number: int) -> int:
        return int(self.table.n_seeds[self.table.numbers.index(number)])

    def is_closed(self, number: int) -> bool:
        """Say whether a seed of a configuration failed, in its own trial or in a repeat."""
        closed = self.table.closed[self.table.numbers.index(number)]
        return bool(closed) or number in self._failed_repeats

    @property
    def noise_share(self) -> float | None:
        """The noise near the best; None as long as no configuration has two seeds."""
        if self._n_repeated == 0:
            return None
        worth = self.table.worth
        return noise_share(worth.mean, worth.noise)

    @property
    def _n_repeated(self) -> int:
        return int((self.table.n_seeds > 1).sum())

    @property
    def search_is_over(self) -> bool:
        """Whether the rest of the budget is for the finals."""
        if self.spent < (1.0 - MOST) * self.budget:
            return False
        share = 1.0 if self.noise_share is None else self.noise_share
        finals = max(2, round(final_share(share) * self.budget))
        return self.spent >= self.budget - finals

    @property
    def shows_noise(self) -> bool:
        """Whether the early configurations have the seeds that tell how noisy either metric is."""
        return int((self.table.n_seeds > 0).sum()) >= _EARLY

    def repeats(self, number: int) -> bool:
        """Say whether a trial that has one seed gets a second one at once."""
        index = self.table.numbers.index(number)
        if index >= _EARLY or self.search_is_over:
            return False
        if self._n_repeated >= _REPEATS and (self.noise_share or 0.0) < _NEGLIGIBLE:
            return False
        return bool(self.table.means[index] <= np.median(self.table.means[self.table.n_seeds > 0]))

    def value_of(self, number: int) -> float:
        """Return what the sampler is told: the shrunken mean, once the noise is known."""
        index = self.table.numbers.index(number)
        known = self.noise_share is not None
        mean = self.table.worth.mean[index] if known else self.table.means[index]
        return float(self.table.sign * mean)


class BudgetedSearch:
    """What a trial does in a search with a budget of trainings, the finals included.

    A configuration may have ``n_max`` seeds.
    """

    def __init__(self, trainings: int, n_max: int) -> None:
        self.trainings = whole_number("budget", trainings, _LEAST, "Give more trainings.")
        self._n_max = n_max

    def begin(self, trial: optuna.Trial) -> int | None:
        """Return the trial that has the parameters which the sampler has drawn, if there is one.

        Raises optuna.TrialPruned if the rest of the budget is for the finals.
        """
        spending = Spending(trial.study)
        if spending.search_is_over:
            _keep_drawn(trial, spending.table.trials)
            stop_search(trial.study)
            raise optuna.TrialPruned("the search has spent its share of the budget")
        drawn = trial.relative_params
        return spending.same_as(drawn, trial.number) if drawn else None

    def next_seed(self, trial: optuna.Trial, number: int) -> int:
        """Mark a trial as a repeat; return the index of the next seed for its parameters.

        Raises optuna.TrialPruned if they have had all seeds, or one of theirs failed. A sampler
        that proposes nothing else ends the search.
        """
        trial.set_user_attr(REPEAT_OF, number)
        spending = Spending(trial.study)
        index = spending.n_seeds(number)
        closed = spending.is_closed(number)
        if closed or index >= self._n_max:
            _keep_drawn(trial, spending.table.trials)
            latest = trial.study.get_trials(deepcopy=False)[-_IDLE - 1 : -1]
            if len(latest) == _IDLE and all(_is_idle(one) for one in latest):
                stop_search(trial.study)
            why = "a seed of theirs failed" if closed else "they have had all seeds"
            raise optuna.TrialPruned(f"these parameters get no further seed: {why}")
        return index

    def repeats(self, trial: optuna.Trial, n_done: int) -> bool:
        """Say whether a trial gets another seed at once; one like an earlier trial is marked."""
        drawn = bool(trial.relative_params)  # then it repeats none, as was seen at its beginning
        if drawn and trial.number >= _LATE:
            return False
        spending = Spending(trial.study)
        earlier = None if drawn else spending.same_as(trial.params, trial.number)
        if earlier is not None:
            trial.set_user_attr(REPEAT_OF, earlier)
        return earlier is None and n_done == 1 and spending.repeats(trial.number)

    def end(self, trial: optuna.Trial) -> float:
        """Return the value of a trial, and stop the search once the rest is for the finals."""
        spending = Spending(trial.study)
        if spending.shows_noise and choose_metric(trial.study, spending.table):
            spending = Spending(trial.study)
        if spending.search_is_over:
            stop_search(trial.study)
        return spending.value_of(trial.user_attrs.get(REPEAT_OF, trial.number))


def keep_further_seed(study: optuna.Study, number: int, index: int, record: SeedRecord) -> None:
    """Keep a seed of a configuration whose trial is finished, where the finals keep theirs."""
    attributes = {CONFIG: number, SEED_INDEX: index, RECORD: record.to_attribute()}
    trial = create_trial(value=record.by(goes_by(study)), user_attrs=attributes)
    open_companion(study, "finals").add_trial(trial)


def pin_budget(study: optuna.Study, trainings: int | None) -> None:
    """Keep the budget in the study; it may change, but not come or go."""
    known = study.user_attrs.get(BUDGET)
    if known is None and trainings is not None and has_seeds(study):
        raise StateMismatchError(
            f"budget must be left out where the study {study.study_name!r} was begun without",
            str(trainings),
            "Begin another study.",
        )
    if known is not None and trainings is None:
        raise StateMismatchError(
            f"budget must be given where the study {study.study_name!r} was begun with {known}",
            "None",
            "Pass it again, or a larger one.",
        )
    if known != trainings:
        study.set_user_attr(BUDGET, trainings)
    if trainings is not None:
        raced = isinstance(study.pruner, SeedRacePruner)  # it compares under shared seeds
        pin(study, {SEED_ORDER: "same" if raced else "turned"})


def stop_search(study: optuna.Study) -> None:
    """End ``study.optimize`` after this trial; whoever asks and tells looks for itself."""
    with suppress(RuntimeError):
        study.stop()


def _keep_drawn(trial: optuna.Trial, others: Sequence[FrozenTrial]) -> None:
    """Let a pruned trial keep what the sampler drew, or no parameter is left that all share."""
    spaces: dict[str, BaseDistribution] = {}
    for other in others:
        spaces.update(other.distributions)
    suggest(trial, {name: spaces[name] for name in trial.relative_params if name in spaces})


def _is_idle(trial: FrozenTrial) -> bool:
    """Say whether a trial met parameters that get no further seed."""
    return trial.state == TrialState.PRUNED and REPEAT_OF in trial.user_attrs


def _is_lost(trial: FrozenTrial) -> bool:
    """Say whether a trial has spent a training without a result."""
    stopped = trial.user_attrs.get(STATUS) == STOPPED_IN_EPOCH
    wasted = trial.user_attrs.get(REPEAT_OF) is not None and trial.intermediate_values
    return trial.state != TrialState.WAITING and bool(
        stopped or wasted or FAILED in trial.user_attrs
    )
