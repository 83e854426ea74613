"""A budget of trainings, split between search and finals as the noise of the seeds demands.

The search begins with one seed a configuration. A few promising ones get a second one, and all that
get it, from the first to the last, tell how much seeds matter against configurations near the best:
that decides what is left for the finals.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from trueup.decide.budget import MOST, final_share, noise_share
from trueup_optuna.ranking import standings
from trueup_optuna.study_state import BUDGET
from trueup_optuna.trial_state import FAILED, STATUS, STOPPED_IN_EPOCH

_EARLY = 12
"""Configurations among which the better half gets a second seed."""
_REPEATS = 3
"""Repeated configurations after which seeds that change nothing need no more of them."""
_NEGLIGIBLE = 0.01


class Spending:
    """Where a study with a budget stands.

    Parameters
    ----------
    study : optuna.Study
        Begun with ``SeedObjective(budget=...)``.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.budget = int(study.user_attrs[BUDGET])
        self.table = standings(study)
        self._lost = sum(_is_lost(trial) for trial in study.get_trials(deepcopy=False))

    @property
    def searched(self) -> int:
        """Trainings of the search, those that gave no result included."""
        return int(self.table.n_searched.sum()) + self._lost

    @property
    def noise_share(self) -> float | None:
        """The noise near the best; None as long as no configuration has two seeds."""
        if self._n_repeated == 0:
            return None
        return noise_share(self.table.worth.mean, float(self.table.noise.pooled))

    @property
    def _n_repeated(self) -> int:
        return int((self.table.n_seeds > 1).sum())

    @property
    def search_is_over(self) -> bool:
        """Whether the rest of the budget is for the finals."""
        if self.searched < (1.0 - MOST) * self.budget:
            return False
        share = 1.0 if self.noise_share is None else self.noise_share
        finals = max(2, round(final_share(share) * self.budget))
        return self.searched >= self.budget - finals

    def repeats(self, number: int) -> bool:
        """Say whether a trial that has one seed gets a second one at once."""
        index = self.table.numbers.index(number)
        if index >= _EARLY or self.search_is_over:
            return False
        if self._n_repeated >= _REPEATS and (self.noise_share or 0.0) < _NEGLIGIBLE:
            return False
        first = self.table.values[:, 0][self.table.n_seeds > 0]
        return bool(self.table.values[index, 0] <= np.median(first))

    def value_of(self, number: int) -> float:
        """Return what the sampler is told: the shrunken mean, once the noise is known."""
        index = self.table.numbers.index(number)
        known = self.noise_share is not None
        mean = self.table.worth.mean[index] if known else self.table.means[index]
        return float(self.table.sign * mean)


def stop_search(study: optuna.Study) -> None:
    """End ``study.optimize`` after this trial; whoever asks and tells looks for itself."""
    with suppress(RuntimeError):
        study.stop()


def _is_lost(trial: FrozenTrial) -> bool:
    """Say whether a trial has spent a training without a result."""
    stopped = trial.user_attrs.get(STATUS) == STOPPED_IN_EPOCH
    return trial.state != TrialState.WAITING and (stopped or FAILED in trial.user_attrs)
