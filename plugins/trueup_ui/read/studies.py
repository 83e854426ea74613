"""Tuned studies: those that were logged to MLflow, and those that an Optuna storage holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.items import (
    COUNT_KEY,
    STATUS_TAG,
    STUDY_ROLE,
    STUDY_TAG,
    TRIAL_TAG,
    calibrated_key,
)

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_OPTIMISTIC = "_optimistic"
_ELIMINATED = "eliminated by "
_MEAN = "_mean"


@dataclass(frozen=True)
class Configuration:
    """One configuration of a study; ``standard_error`` is of ``mean``, None with one seed."""

    number: int
    params: Mapping[str, Any]
    mean: float
    standard_error: float | None
    n_seeds: int
    eliminated_by: int | None  # number of the trial that beat it
    run_id: str | None = None  # its run, where the study was logged


@dataclass(frozen=True)
class Study:
    """A study as the page sees it.

    Configurations are in order, the best one first, where it is known which direction is better.
    ``optimistic`` is what Optuna calls the best value, ``vanilla_cost`` what the vanilla metric's
    choice would have cost; trainings are counted where they finished.
    """

    name: str
    metric: str
    configurations: tuple[Configuration, ...]
    selected: int | None
    optimistic: float | None
    confirmed: tuple[float, ...] | None  # on fresh seeds: mean, low and high of its 95% interval
    search_trainings: int
    final_trainings: int
    vanilla_cost: float | None


def logged_studies(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the runs of studies, the latest first."""
    return [run for run in reversed(runs) if run.role == STUDY_ROLE]


def logged_study(parent: StoredRun, runs: Sequence[StoredRun]) -> Study:
    """Return a study from its run and those of its configurations."""
    metrics, tags = parent.metrics, parent.tags
    key = next((k.removesuffix(_OPTIMISTIC) for k in metrics if k.endswith(_OPTIMISTIC)), "")
    children = [one for one in runs if one.parent == parent.run_id and TRIAL_TAG in one.tags]
    ends = [metrics.get(f"{key}_confirmed{end}") for end in ("", "_low", "_high")]
    found = [_configuration(one, key) for one in children if key + _MEAN in one.metrics]
    if key.startswith(calibrated_key("")):  # a loss: lower is better
        found.sort(key=lambda one: one.mean)
    confirmed = [end for end in ends if end is not None]
    selected = tags.get(TRIAL_TAG, "")
    return Study(
        tags.get(STUDY_TAG, parent.name),
        key,
        tuple(found),
        int(selected) if selected.isdecimal() else None,
        metrics.get(key + _OPTIMISTIC),
        tuple(confirmed) if len(confirmed) == 3 else None,
        int(metrics.get("search_trainings", 0)),
        int(metrics.get("final_trainings", 0)),
        metrics.get(f"{key}_cost_of_vanilla_choice"),
    )


def _configuration(run: StoredRun, key: str) -> Configuration:
    n, sd = int(run.metrics.get(COUNT_KEY, 1)), run.metrics.get(f"{key}_std")
    status = run.tags.get(STATUS_TAG, "")
    by = status.removeprefix(_ELIMINATED) if status.startswith(_ELIMINATED) else ""
    number = run.tags[TRIAL_TAG]
    return Configuration(
        int(number) if number.isdecimal() else -1,
        run.params,
        run.metrics[key + _MEAN],
        None if sd is None else sd / math.sqrt(n),
        n,
        int(by) if by.isdecimal() else None,
        run.run_id,
    )


def open_study_storage(where: str) -> BaseStorage:
    """Return the storage behind a database URL or a journal file, which must exist."""
    from pathlib import Path

    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError

    from trueup_optuna import open_journal

    try:
        if "://" in where:
            return RDBStorage(where, skip_table_creation=True)
        if Path(where).is_file():
            return open_journal(where)
        reason: object = "there is no such file"
    except (SQLAlchemyError, ImportError, ValueError, RuntimeError) as failure:
        reason = getattr(failure, "orig", failure)
    raise InvalidInputError(
        "study_storage must hold studies of Optuna",
        f"{where!r}: {reason}",
        "Give the database URL or the journal file that the study was begun with.",
    )


def study_names(storage: BaseStorage) -> list[str]:
    """Return the studies of a storage, without those that finals and confirmation keep."""
    return sorted(
        study.study_name for study in storage.get_all_studies() if "::" not in study.study_name
    )


def stored_study(storage: BaseStorage, name: str) -> Study | str:
    """Return a study, or why it cannot be shown yet.

    Raises KeyError if the storage has no study of that name.
    """
    import optuna

    from trueup_optuna import report_study
    from trueup_optuna.final.confirmation import kept_confirmation

    study = optuna.load_study(study_name=name, storage=storage)
    try:
        report = report_study(study)
    except (UndefinedMetricError, InvalidInputError) as reason:
        return str(reason)
    configurations = [
        Configuration(
            row.number, row.params, row.mean, row.standard_error, row.n_seeds, row.eliminated_by
        )
        for row in report.rows
    ]
    vanilla, confirmed = report.vanilla, kept_confirmation(study)
    return Study(
        report.name,
        report.loss if vanilla is None else calibrated_key(report.loss),
        tuple(configurations),
        report.best.trial.number,
        report.best.optimistic_value,
        None if confirmed is None else (confirmed.mean, confirmed.low, confirmed.high),
        report.search_trainings,
        report.final_trainings,
        None if vanilla is None else vanilla.cost,
    )
