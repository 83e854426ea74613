"""The parent run of seeds: mean, standard deviation and interval of its children's metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from trueup_mlflow.seeds.findings import SeedFindings, SeedOutcome, seed_findings, seed_headline
from trueup_mlflow.write.failures import warn
from trueup_mlflow.write.items import (
    COUNT_KEY,
    PROCESS_TAG,
    ROLE_TAG,
    SEED_PARENT_ROLE,
    SEED_ROWS_TAG,
    SEED_TAG,
    SPREAD_ENDS,
    LogItems,
    calibrated_key,
    figure_file,
    seed_items,
)
from trueup_mlflow.write.late_twins import late_twins
from trueup_mlflow.write.runs import NOTE_TAG, children_of
from trueup_mlflow.write.writer import RunWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Seeds = Mapping[str, Sequence[float]]
_FINISHED = "attributes.status = 'FINISHED'"


def log_seed_summary(parent_run_id: str, *, client: MlflowClient | None = None) -> bool:
    """Log ``K``, ``K_std``, ``K_low``, ``K_high``, ``n_seeds`` and figures on the parent of seeds.

    Parameters
    ----------
    parent_run_id : str
        Run whose finished child runs are the seeds.
    client : MlflowClient, optional
        Client of the store; one for the current tracking URI by default.

    Returns
    -------
    bool
        Whether anything was written.

    Notes
    -----
    Only metrics that every finished child has are summarised: a mean over some of the seeds would
    be taken for a mean over all of them. ``[K_low, K_high]`` is Student's t interval of the mean at
    95%, over seeds, on these validation rows. Each ``K`` that has a calibrated twin gets the figure
    ``trueup/seed_distributions_<K>.png``; it names the pipeline as the parent run is named. Where
    seeds were scored on different rows, gave the same values throughout, or vary more after the
    calibration, the description and a warning say so with the usual cause; the tag
    ``trueup.seed_rows`` says whether the rows were the same.

    Examples
    --------
    >>> import mlflow
    >>> from trueup_mlflow.seeds import log_seed_summary
    >>> with mlflow.start_run() as parent:
    ...     for seed in range(3):
    ...         with mlflow.start_run(nested=True):
    ...             mlflow.log_metric("loss", 0.4 + 0.01 * seed)
    >>> log_seed_summary(parent.info.run_id)
    True
    >>> round(mlflow.get_run(parent.info.run_id).data.metrics["loss"], 3)
    0.41
    """
    client = client or MlflowClient()
    parent = client.get_run(parent_run_id)
    outcomes = seed_outcomes(parent, client)
    metrics_of_seeds = [outcome.metrics for outcome in outcomes]
    items = summary_items(metrics_of_seeds)
    if not items.metrics:
        return False
    writer = RunWriter(parent_run_id, client)
    summarised = set(items.metrics) & set(metrics_of_seeds[0])
    _log_figures(parent.info.run_name, metrics_of_seeds, summarised, writer)
    findings = seed_findings(outcomes)
    if PROCESS_TAG not in parent.data.tags:  # else the backend prints them
        for note in findings.notes:
            warn(note)
    tags = _parent_tags(parent, items, findings)
    return writer.log(replace(items, tags=tags))


def seed_outcomes(parent: Run, client: MlflowClient) -> list[SeedOutcome]:
    """Return the seeds of a parent that have finished."""
    info = parent.info
    children = children_of(client, [info.experiment_id], info.run_id, _FINISHED)
    return [_outcome(child) for child in children]


def _outcome(run: Run) -> SeedOutcome:
    tags, late = run.data.tags, late_twins(run)
    name = f"seed {tags[SEED_TAG]}" if SEED_TAG in tags else f"run {run.info.run_name}"
    metrics = {key: value for key, value in run.data.metrics.items() if key not in late}
    return SeedOutcome(name, metrics, tags, late)


def _parent_tags(parent: Run, items: LogItems, findings: SeedFindings) -> dict[str, str]:
    """Return role, rows and description; the description of a run of the user's is kept."""
    tags = {ROLE_TAG: SEED_PARENT_ROLE}
    if findings.rows:
        tags[SEED_ROWS_TAG] = findings.rows
    is_ours = PROCESS_TAG in parent.data.tags
    if is_ours or (findings.notes and NOTE_TAG not in parent.data.tags):
        headline = f"{items.metrics[COUNT_KEY]:.0f} seeds: {seed_headline(items.metrics)}."
        tags[NOTE_TAG] = " ".join([headline, *findings.notes])
    return tags


def summary_items(metrics_of_seeds: Sequence[Mapping[str, float]]) -> LogItems:
    """Return what a parent gains from the metrics of its seeds; nothing for no seeds.

    A metric of the seeds whose key is that of a summary, such as ``loss_std`` beside ``loss``, is
    skipped.

    Examples
    --------
    >>> from trueup_mlflow.seeds import summary_items
    >>> items = summary_items([{"loss": 0.40}, {"loss": 0.41}, {"loss": 0.42}])
    >>> sorted(items.metrics)
    ['loss', 'loss_high', 'loss_low', 'loss_std', 'n_seeds']
    """
    shared = set.intersection(*map(set, metrics_of_seeds)) if metrics_of_seeds else set()
    merged: dict[str, float] = {}
    skipped: dict[str, str] = {}
    taken = {COUNT_KEY}
    for key in sorted(shared, key=lambda key: (len(key), key)):  # K comes before K_std
        if key.startswith("system/"):
            continue
        if key in taken:
            skipped[key] = "on the parent this key is that of a summary over seeds"
            continue
        items = seed_items(key, [metrics[key] for metrics in metrics_of_seeds])
        taken |= {key + end for end in SPREAD_ENDS}
        merged |= items.metrics
        skipped |= items.skipped
    return LogItems("seeds", merged, skipped=skipped)


def _log_figures(
    pipeline: str,
    metrics_of_seeds: Sequence[Mapping[str, float]],
    summarised: set[str],
    writer: RunWriter,
) -> None:
    for key in sorted(key for key in summarised if calibrated_key(key) in summarised):
        vanilla = {pipeline: [metrics[key] for metrics in metrics_of_seeds]}
        calibrated = {pipeline: [metrics[calibrated_key(key)] for metrics in metrics_of_seeds]}
        writer.log_figure(
            partial(_draw, vanilla, calibrated, key), figure_file("seed_distributions", key), key
        )


def _draw(vanilla: _Seeds, calibrated: _Seeds, key: str) -> Figure:
    from trueup_mlflow.write.figures import seed_distributions

    return seed_distributions(vanilla, calibrated, metric=key)
