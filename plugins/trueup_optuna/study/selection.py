"""Which configuration to use: never the luckiest seed.

The selection is written back to where people look: the table of trials, and the dashboard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import optuna
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import FrozenTrial

from trueup.presentation import Line, Presented
from trueup_optuna.study.ranking import Ranking, ranking_of
from trueup_optuna.study.study_state import single_objective

SELECTED = "trueup:selected"
MEAN = "trueup:mean"
N_SEEDS = "trueup:n_seeds"


@dataclass(frozen=True)
class BestConfig(Presented):
    """The selected configuration.

    Attributes
    ----------
    trial : FrozenTrial
        Its trial in the study; ``trial.params`` are its parameters.
    mean : float
        Mean over its seeds, in units of the metric. It is still optimistic, as the best of many is;
        only :func:`trueup_optuna.confirm` gives an unbiased value.
    standard_error : float
        Of the mean, from the variance moderated over configurations.
    n_seeds : int
        Seeds of search and finals behind the mean.
    optimistic_value : float
        What ``study.best_value`` would have claimed.
    optimism : float
        By how much that is better than ``mean``; negative where it is worse, as after finals whose
        seeds were kinder than those of the search.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import select_best
    >>> select_best(study).n_seeds >= 1
    True
    """

    trial: FrozenTrial
    mean: float
    standard_error: float
    n_seeds: int
    optimistic_value: float
    optimism: float

    def summary(self) -> str:
        """Return what was selected and what it is worth, in words."""
        return (
            f"Trial {self.trial.number}: {self.mean:.5g} ± {self.standard_error:.2g} over "
            f"{self.n_seeds} seeds; study.best_value claims {self.optimistic_value:.5g}."
        )

    def lines(self) -> list[Line]:
        """Return the mean, give or take its standard error, and what Optuna would have claimed."""
        low, high = self.mean - self.standard_error, self.mean + self.standard_error
        return [
            Line("mean ± standard error", self.mean, low, high),
            Line("study.best_value", self.optimistic_value),
        ]


def select_best(study: optuna.Study) -> BestConfig:
    """Select the survivor with the best mean, one standard error to its disadvantage.

    Parameters
    ----------
    study : optuna.Study
        With or without finals.

    Returns
    -------
    BestConfig
        Chosen among the configurations with at least two seeds.

    Raises
    ------
    UndefinedMetricError
        If no finished configuration has two seeds.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_optuna import select_best
    >>> round(select_best(study).trial.params["x"], 1)
    0.4
    """
    single_objective(study)
    table = ranking_of(study)
    best = table.best()
    mean = float(table.sign * table.means[best])
    claimed = study.best_value
    return BestConfig(
        trial=table.trials[best],
        mean=mean,
        standard_error=float(table.standard_errors[best]),
        n_seeds=int(table.n_seeds[best]),
        optimistic_value=claimed,
        optimism=table.sign * (mean - claimed),
    )


def write_selection(study: optuna.Study) -> None:
    """Keep the selected trial in the study, and mean and seeds of each configuration in its trial.

    The study gets the user attribute ``trueup:selected``: number, mean, standard error and seeds of
    the selected trial. In memory and in a database each trial gets ``trueup:selected``,
    ``trueup:mean`` and ``trueup:n_seeds`` too, which ``study.trials_dataframe()`` shows. Other
    storages, the journal among them, refuse to change a finished trial.
    """
    table = ranking_of(study)
    best = table.best()
    study.set_user_attr(
        SELECTED,
        {
            "number": table.numbers[best],
            "mean": float(table.sign * table.means[best]),
            "standard_error": float(table.standard_errors[best]),
            "n_seeds": int(table.n_seeds[best]),
        },
    )
    pen = _Pen.of(study)
    if pen is not None:
        for index, trial in enumerate(table.trials):
            pen.write(trial, _attributes(table, index, selected=index == best))


def _attributes(table: Ranking, index: int, *, selected: bool) -> dict[str, Any]:
    if table.n_seeds[index] == 0:
        return {}
    mean = float(table.sign * table.means[index])
    return {SELECTED: selected, MEAN: mean, N_SEEDS: int(table.n_seeds[index])}


class _Pen:
    """Writes user attributes into finished trials, where the storage has no copies elsewhere.

    Optuna keeps finished trials as they are, so that storages may cache them. The values of a trial
    stay untouched here; attributes of ours are added, by the storage's own code without its check.
    """

    def __init__(self, study: optuna.Study, storage: Any, cache: Any | None) -> None:
        self._study_id, self._cache = study._study_id, cache
        self._storage = object.__new__(type(storage))
        vars(self._storage).update(vars(storage))  # the same data, locks and connections
        self._storage.check_trial_is_updatable = lambda *_: None

    @classmethod
    def of(cls, study: optuna.Study) -> _Pen | None:
        """Return a pen for the storage of a study, None where finished trials can't be changed."""
        storage = study._storage
        if isinstance(storage, InMemoryStorage):
            return cls(study, storage, None)
        if isinstance(storage, _CachedStorage):
            return cls(study, storage._backend, storage)
        return cls(study, storage, None) if isinstance(storage, RDBStorage) else None

    def write(self, trial: FrozenTrial, attributes: dict[str, Any]) -> None:
        changed = {key: v for key, v in attributes.items() if trial.user_attrs.get(key) != v}
        for key, value in changed.items():
            self._storage.set_trial_user_attr(trial._trial_id, key, value)
        if changed and self._cache is not None:  # so that it is read anew
            self._cache._studies[self._study_id].unfinished_trial_ids.add(trial._trial_id)
