"""Write the selection back, to where people look: the table of trials, and the dashboard."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import FrozenTrial

from trueup_optuna.study.ranking import Standings, standings

SELECTED = "trueup:selected"
MEAN = "trueup:mean"
N_SEEDS = "trueup:n_seeds"


def write_selection(study: optuna.Study) -> None:
    """Keep the selected trial in the study, and mean and seeds of each configuration in its trial.

    The study gets the user attribute ``trueup:selected``: number, mean, standard error and seeds of
    the selected trial. In memory and in a database each trial gets ``trueup:selected``,
    ``trueup:mean`` and ``trueup:n_seeds`` too, which ``study.trials_dataframe()`` shows. Other
    storages, the journal among them, refuse to change a finished trial.
    """
    table = standings(study)
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
            pen.write(trial, _facts(table, index, selected=index == best))


def _facts(table: Standings, index: int, *, selected: bool) -> dict[str, Any]:
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

    def write(self, trial: FrozenTrial, facts: dict[str, Any]) -> None:
        changed = {key: v for key, v in facts.items() if trial.user_attrs.get(key) != v}
        for key, value in changed.items():
            self._storage.set_trial_user_attr(trial._trial_id, key, value)
        if changed and self._cache is not None:  # so that it is read anew
            self._cache._studies[self._study_id].unfinished_trial_ids.add(trial._trial_id)
