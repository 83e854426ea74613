"""Calibrated metrics for finished runs, from the predictions that were stored in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

from mlflow.entities import Run, RunStatus
from mlflow.tracking import MlflowClient
from tqdm import tqdm

import trueup
from trueup import Evaluation
from trueup.errors import InvalidInputError
from trueup_mlflow.log.log_evaluation import log_fields
from trueup_mlflow.log.log_predictions import PREFIX_OF_FILES
from trueup_mlflow.log.prediction_table import StoredCall, read_call
from trueup_mlflow.write.failures import describe
from trueup_mlflow.write.items import (
    ARTIFACT_FOLDER,
    evaluation_items,
    fingerprint_tag,
    metric_key,
)
from trueup_mlflow.write.runs import all_pages, experiment_ids, find_run, read_parquet
from trueup_mlflow.write.writer import Point, RunWriter

Status = Literal["logged", "present", "skipped"]


@dataclass(frozen=True)
class Backfilled:
    """What became of one table of predictions.

    Attributes
    ----------
    run_id : str
        The run.
    artifact : str
        Path of the table in the run; empty where the run itself was skipped.
    status : {"logged", "present", "skipped"}
        Metrics were added, all of them were there, or nothing could be computed.
    key : str
        ``K``, the key of the vanilla metric.
    reason : str
        Why it was skipped.
    """

    run_id: str
    artifact: str
    status: Status
    key: str = ""
    reason: str = ""


def backfill(
    run_ids: Sequence[str] = (),
    *,
    experiment_names: Sequence[str] = (),
    filter_string: str = "",
    client: Any = None,
) -> tuple[Backfilled, ...]:
    """Compute and log the metrics of stored predictions in finished runs.

    Parameters
    ----------
    run_ids : sequence of str
        Runs to look at.
    experiment_names : sequence of str
        Experiments whose runs are looked at as well.
    filter_string : str
        MLflow filter of the runs of the experiments.
    client : mlflow.tracking.MlflowClient, optional
        Client of another store than the current one.

    Returns
    -------
    tuple of Backfilled
        One entry for each table that :func:`trueup_mlflow.log_predictions` stored, in the order of
        the runs.

    Raises
    ------
    InvalidInputError
        If neither runs nor experiments are named, or an experiment does not exist.
    mlflow.exceptions.MlflowException
        If the store can't be searched, or a named run does not exist.

    Notes
    -----
    A metric that has a point at the step already is left as it is, so a second backfill changes
    nothing and a vanilla value that the user logged stays theirs. Metrics of other rows under the
    same key are never mixed: such a table is skipped, and the reason names both fingerprints. Runs
    that have not ended are skipped. The figure of the levels of fields is that of the last step
    that was filled; each step but 0 has a table of its own.

    Examples
    --------
    >>> import mlflow
    >>> from trueup_mlflow import backfill, log_predictions
    >>> with mlflow.start_run() as run:
    ...     _ = log_predictions([0, 1] * 50, [0.3, 0.8] * 50)
    >>> [(done.key, done.status) for done in backfill([run.info.run_id])]
    [('log_loss', 'logged')]
    """
    client = MlflowClient() if client is None else client
    runs = [  # of a deleted one the result is that it was skipped
        find_run(client, run_id, argument="run_ids", may_be_deleted=True) for run_id in run_ids
    ]
    ids = experiment_ids(client, experiment_names)
    runs += all_pages(client.search_runs, ids, filter_string) if ids else ()
    if not run_ids and not experiment_names:
        raise InvalidInputError(
            "run_ids or experiment_names must name what to backfill",
            "neither",
            "Pass the runs or an experiment.",
        )
    unique = {run.info.run_id: run for run in runs}.values()
    bar = tqdm(unique, desc="backfill", unit="run", disable=None)
    return tuple(result for run in bar for result in _backfill_run(run, client))


def _backfill_run(run: Run, client: Any) -> Iterator[Backfilled]:
    run_id = run.info.run_id
    if not RunStatus.is_terminated(RunStatus.from_string(run.info.status)):
        yield Backfilled(run_id, "", "skipped", reason=f"the run is {run.info.status}")
        return
    try:
        paths = [entry.path for entry in client.list_artifacts(run_id, ARTIFACT_FOLDER)]
    except Exception as failure:  # its store of artifacts is gone: the other runs are filled
        yield Backfilled(run_id, "", "skipped", reason=describe(failure))
        return
    for path in sorted(paths, key=lambda path: (len(path), path)):  # the last step comes last
        name = path.rpartition("/")[2]
        if name.startswith(PREFIX_OF_FILES) and name.endswith(".parquet"):
            yield _backfill_table(run_id, path, client)


def _backfill_table(run_id: str, artifact: str, client: Any) -> Backfilled:
    pending = Backfilled(run_id, artifact, "skipped")
    try:
        call = read_call(read_parquet(client, run_id, artifact))
        key = metric_key(call.arguments["loss"], call.place.prefix)
        pending = replace(pending, key=key)
        evaluation = trueup.evaluate(**call.arguments)
        return _log_missing(pending, evaluation, call, client)
    except Exception as failure:  # one unusable table leaves the others to be computed
        return _skip(pending, describe(failure), client)


def _log_missing(
    pending: Backfilled, evaluation: Evaluation, call: StoredCall, client: Any
) -> Backfilled:
    items = evaluation_items(evaluation, prefix=call.place.prefix)
    run = client.get_run(pending.run_id)  # read anew: another table may have added to it
    tag = fingerprint_tag(items.key)
    old, new = run.data.tags.get(tag), items.tags[tag]
    if old not in (None, new):
        reason = f"{items.key} comes from other rows or another split: {old} in the run, {new} here"
        return replace(pending, reason=reason)
    missing = {
        key: value
        for key, value in items.metrics.items()
        if not _has_point(run, key, call.place.step, client)
    }
    if not missing:
        return replace(pending, status="present")
    writer = RunWriter(pending.run_id, client)
    if writer.log(replace(items, metrics=missing), _point(call)):
        log_fields(evaluation, items.key, writer, call.place.step or None)
        return replace(pending, status="logged")
    return replace(pending, reason="writing failed")


def _has_point(run: Run, key: str, step: int, client: Any) -> bool:
    if key not in run.data.metrics:
        return False
    history = client.get_metric_history(run.info.run_id, key)
    return any(point.step == step for point in history)


def _point(call: StoredCall) -> Point:
    place = call.place
    named = SimpleNamespace(name=place.dataset_name, digest=place.dataset_digest)
    dataset = None if None in vars(named).values() else named
    return Point(place.step, place.timestamp, place.model_id, dataset)


def _skip(pending: Backfilled, reason: str, client: Any) -> Backfilled:
    if pending.key:
        RunWriter(pending.run_id, client).skip(pending.key, reason)
    return replace(pending, reason=reason)
