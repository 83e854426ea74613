"""A tuned study as runs: the study is the parent, a configuration a child, a seed its step."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NAME

from trueup import __version__
from trueup.errors import TrueupWarning
from trueup.redact import without_credentials
from trueup_mlflow.log.arguments import check_place
from trueup_mlflow.write.failures import refusing_only
from trueup_mlflow.write.items import (
    ROLE_TAG,
    SEED_PARENT_ROLE,
    SEED_TAG,
    SPLIT_TAG,
    STATUS_TAG,
    STUDY_ROLE,
    STUDY_TAG,
    TRIAL_TAG,
    VERSION_TAG,
    LogItems,
    calibrated_key,
    figure_file,
    fingerprint_tag,
    metric_key,
    seed_items,
)
from trueup_mlflow.write.runs import (
    NOTE_TAG,
    children_of,
    ensure_experiment,
    log_params,
    mark_as_model_training,
    new_child,
    new_run,
)
from trueup_mlflow.write.writer import Point, RunWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DRAWN = 3  # configurations, the best ones


@refusing_only
def log_study(
    report: Any,
    *,
    confirmation: Any = None,
    experiment_name: str | None = None,
    nested_seeds: bool = False,
    prefix: str = "",
    client: MlflowClient | None = None,
) -> str | None:
    """Log a study: one run for it, one nested run for each configuration.

    Parameters
    ----------
    report : StudyReport
        Of ``trueup_optuna.report_study``, or anything with the same attributes.
    confirmation : Confirmation, optional
        Of ``trueup_optuna.confirm``; logged on the run of the study.
    experiment_name : str, optional
        Created if missing; the default experiment otherwise.
    nested_seeds : bool, default False
        Also make a run of each seed, below its configuration, so that ``compare_runs`` finds them.
    prefix : str
        Put before the loss in the keys.
    client : mlflow.tracking.MlflowClient, optional
        Client of the store; one for the current tracking URI by default.

    Returns
    -------
    str or None
        Id of the run of the study. A study that the experiment holds already is completed: it gets
        the configurations and the seeds that it lacks. None where not all could be logged, which is
        a ``TrueupWarning``: another call completes it.

    Notes
    -----
    A configuration has the mean over its seeds as ``K`` and ``calibrated_K`` (and as ``K_mean``),
    with the number of seeds as step, so that sorting runs by ``K`` ranks no lucky seed first; each
    seed as ``K_by_seed`` with the seed index as step; and ``K_std``, ``K_low``, ``K_high``,
    ``n_seeds``. Where ``train`` returned numbers there is ``K`` alone, called ``value``. The run of
    the study has the selected parameters and mean, ``_optimistic`` (what Optuna calls the best
    value) and ``_confirmed`` with its interval.

    Examples
    --------
    After the six trials of the example of :class:`trueup_optuna.SeedObjective`:

    >>> from trueup_mlflow import log_study
    >>> from trueup_optuna import report_study
    >>> run_id = log_study(report_study(study))
    >>> import mlflow
    >>> mlflow.get_run(run_id).data.metrics["n_configurations"]
    6.0
    """
    check_place(prefix=prefix)
    client = client or MlflowClient()
    experiment_id = "0"
    if experiment_name is not None:
        experiment_id = ensure_experiment(client, experiment_name, argument="experiment_name")
    key = metric_key(report.loss, prefix)
    parent = _parent(client, experiment_id, report)
    known = _logged_trials(client, experiment_id, parent)
    for row in report.rows:
        run_id, n_logged = known.get(str(row.number), (None, 0))
        if run_id is None:
            name, tags = (
                f"trial {row.number}",
                {TRIAL_TAG: str(row.number), VERSION_TAG: __version__},
            )
            run_id = new_child(client, (experiment_id, parent), name, tags, row.params)
        _log_seeds(client, (experiment_id, run_id), row, key, n_logged, nested_seeds)
    writer = RunWriter(parent, client)
    writer.log(study_items(report, key, confirmation))
    if report.vanilla is not None:
        writer.log_figure(lambda: _draw(report, key), figure_file("seed_distributions", key), key)
    writer.require_store()
    _log_selected(client, parent, report.best.trial.params)
    selected = json.dumps(report.best.trial.params, indent=2)
    writer.log_text(selected, "selected.json", key)
    writer.require_store()
    client.set_terminated(parent)
    return parent


def study_items(report: Any, key: str, confirmation: Any = None) -> LogItems:
    """Return the metrics and tags of the run of a study."""
    goes_by = "vanilla" if report.vanilla is None else getattr(report, "goes_by", "calibrated")
    main = key if goes_by == "vanilla" else calibrated_key(key)
    best = report.best
    metrics = {
        main: best.mean,
        f"{main}_standard_error": best.standard_error,
        f"{main}_optimistic": best.optimistic_value,
        "n_seeds": float(best.n_seeds),
        "n_configurations": float(len(report.rows)),
        "search_trainings": float(report.search_trainings),
        "final_trainings": float(report.final_trainings),
    }
    if report.vanilla is not None:
        metrics[f"{main}_cost_of_vanilla_choice"] = report.vanilla.cost
    if confirmation is not None:
        metrics |= {
            f"{main}_confirmed": confirmation.mean,
            f"{main}_confirmed_low": confirmation.low,
            f"{main}_confirmed_high": confirmation.high,
        }
    tags = {TRIAL_TAG: str(best.trial.number), NOTE_TAG: _headline(report, main, confirmation)}
    return LogItems(key, metrics, tags)


def _headline(report: Any, main: str, confirmation: Any) -> str:
    """Return the description of the run of a study: what was selected, and what it is worth."""
    best, fresh = report.best, confirmation
    parameters = ", ".join(f"{name}={value}" for name, value in best.trial.params.items())
    return without_credentials(
        f"Trial {best.trial.number} of {len(report.rows)} configurations ({parameters}): {main} "
        f"{best.mean:.5g} ± {best.standard_error:.2g} over {best.n_seeds} seeds, optimistic as the "
        f"best of many is; Optuna's best value is {best.optimistic_value:.5g}."
    ) + (f" Fresh seeds: {fresh.mean:.5g} [{fresh.low:.5g}, {fresh.high:.5g}]." if fresh else "")


def _draw(report: Any, key: str) -> Figure:
    """Draw both metrics of each seed of the best configurations."""
    from trueup_mlflow.write.figures import seed_distributions

    best = {f"trial {row.number}": row.records for row in report.rows[:_DRAWN] if row.records}
    vanilla = {name: [one.vanilla for one in seeds] for name, seeds in best.items()}
    calibrated = {name: [one.value for one in seeds] for name, seeds in best.items()}
    return seed_distributions(vanilla, calibrated, metric=key)


def configuration_items(records: Sequence[Any], key: str) -> tuple[list[LogItems], LogItems]:
    """Return the items of each seed of a configuration, and those of the configuration."""
    per_seed = [
        LogItems(key, _seed_metrics(record, key), _seed_tags(record, key)) for record in records
    ]
    summary: dict[str, float] = {}
    for name in per_seed[0].metrics if per_seed else ():
        over_seeds = dict(seed_items(name, [items.metrics[name] for items in per_seed]).metrics)
        summary |= {f"{name}_mean": over_seeds[name], **over_seeds}
    tags = per_seed[0].tags if per_seed else {}
    return per_seed, LogItems(
        key, summary, {name: tags[name] for name in tags if name == SPLIT_TAG}
    )


def _seed_metrics(record: Any, key: str) -> dict[str, float]:
    if record.vanilla is None:
        return {key: record.value}
    return {key: record.vanilla, calibrated_key(key): record.value}


def _seed_tags(record: Any, key: str) -> dict[str, str]:
    tags = {SPLIT_TAG: record.split, fingerprint_tag(key): record.fingerprint}
    return {name: value for name, value in tags.items() if value is not None}


def _parent(client: MlflowClient, experiment_id: str, report: Any) -> str:
    quoted = report.name.replace("'", "\\'")
    query = f"tags.`{STUDY_TAG}` = '{quoted}' and tags.`{ROLE_TAG}` = '{STUDY_ROLE}'"
    for run in client.search_runs([experiment_id], query, max_results=1):
        return str(run.info.run_id)
    mark_as_model_training(client, experiment_id)
    tags = {STUDY_TAG: report.name, ROLE_TAG: STUDY_ROLE, MLFLOW_RUN_NAME: _called(report)}
    return new_run(client, experiment_id, {VERSION_TAG: __version__, **tags})


def _called(report: Any) -> str:
    """Return the name of a study, or what it tunes where Optuna made the name up."""
    made_up = report.name.startswith("no-name-")
    return f"study of {', '.join(report.best.trial.params)}" if made_up else str(report.name)


def _logged_trials(
    client: MlflowClient, experiment_id: str, parent: str
) -> dict[str, tuple[str, int]]:
    """Return run and number of logged seeds of each configuration whose logging was finished."""
    finished = children_of(client, [experiment_id], parent, "attributes.status = 'FINISHED'")
    return {
        run.data.tags[TRIAL_TAG]: (str(run.info.run_id), int(run.data.metrics.get("n_seeds", 0)))
        for run in finished
        if TRIAL_TAG in run.data.tags
    }


def _log_selected(client: MlflowClient, parent: str, params: Mapping[str, Any]) -> None:
    """Log the selected parameters; MLflow keeps those of an earlier selection, which is said."""
    known = client.get_run(parent).data.params
    chosen = {name: without_credentials(str(value)) for name, value in params.items()}
    log_params(client, parent, {n: value for n, value in chosen.items() if n not in known})
    if known and known != chosen:
        warnings.warn(
            f"run {parent} keeps the parameters of an earlier selection: MLflow can't change them. "
            "Read trueup/selected.json, or log to another experiment.",
            TrueupWarning,
            stacklevel=3,
        )


def _log_seeds(
    client: MlflowClient, home: tuple[str, str], row: Any, key: str, n_logged: int, nested: bool
) -> None:
    """Log what came after the seeds that were logged before, and the summary anew."""
    _, run_id = home
    per_seed, summary = configuration_items(row.records, key)
    writer = RunWriter(run_id, client)
    for step, items in list(enumerate(per_seed))[n_logged:]:
        by_seed = {f"{name}_by_seed": value for name, value in items.metrics.items()}
        writer.log(LogItems(key, by_seed), Point(step=step))
    writer.log(summary, Point(step=len(per_seed)))
    writer.require_store()
    out = row.eliminated_by
    client.set_tag(run_id, STATUS_TAG, "finished" if out is None else f"eliminated by {out}")
    if nested:
        for record, items in list(zip(row.records, per_seed, strict=True))[n_logged:]:
            tags = {SEED_TAG: str(record.seed), VERSION_TAG: __version__}
            name, params = f"seed {record.seed}", {"seed": record.seed}
            seed_run = new_child(client, home, name, tags, params)
            RunWriter(seed_run, client).log(items)
            client.set_terminated(seed_run)
        client.set_tag(run_id, ROLE_TAG, SEED_PARENT_ROLE)
    client.set_terminated(run_id)
