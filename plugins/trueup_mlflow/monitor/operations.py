"""Monitor registered models: estimated error before labels arrive, realized error after.

The scheduler is the user's own: a cron job or an orchestrator calls :func:`estimate` with each
batch. No estimate sees a change of the target given the features; :func:`realize` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.replace_file import replace_file
from trueup_mlflow.monitor.check_registry import (
    ReferenceKind,
    check_uri,
    describe_reference,
    load_check,
    load_schema,
    register_check,
    train_check,
)
from trueup_mlflow.monitor.compare_versions import ModelComparison, decide
from trueup_mlflow.monitor.registered_model import LoadedModel, resolve
from trueup_mlflow.monitor.report_page import Coverage, draw_series, render_report
from trueup_mlflow.monitor.store import PREDICTION, MonitorStore, records_of
from trueup_mlflow.monitor.tables import (
    digest_of,
    is_spark_frame,
    joined,
    late_labels,
    read_table,
    row_ids,
)
from trueup_mlflow.write.items import ROLE_TAG
from trueup_mlflow.write.monitor_items import (
    ESTIMATED,
    MODEL_TAG,
    MONITOR_ROLE,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
    estimate_metrics,
    realized_metrics,
    timestamp_of,
)

__all__ = ["compare", "estimate", "init", "realize", "records", "report", "status"]


def init(
    model_uri: str,
    reference: Any,
    *,
    target: str,
    reference_is: ReferenceKind = "held-out",
    row_id: str | None = None,
) -> str:
    """Train, log and register the check of a model version.

    Parameters
    ----------
    model_uri : str
        ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``.
    reference : data frame (pandas, Spark) or path of a parquet or CSV file
        Labelled rows.
    target : str
        Column of the labels.
    reference_is : {"held-out", "train"}, default "held-out"
        Whether the model has seen the rows. With "train" it is refitted five-fold where it can be.
    row_id : str, optional
        Column that identifies a row; needed to join labels that arrive late.

    Returns
    -------
    str
        URI of the check, ``models:/NAME__trueup_check/N``.

    Raises
    ------
    InvalidInputError
        If anything is wrong with the model or the reference; nothing is registered then.
    """
    client = MlflowClient()
    version = resolve(model_uri, client)
    table = read_table(reference, row_id=row_id)
    schema = describe_reference(table, target, row_id)
    check = train_check(LoadedModel.load(version.uri), table, schema, reference_is)
    uri = register_check(check, version, client)
    MonitorStore(version, client).run()  # before two processes could both find that it is missing
    return uri


def estimate(model_uri: str, batch: Any, *, at: str | datetime | None = None) -> MSEEstimate:
    """Estimate the error of a model on a batch and log it.

    Parameters
    ----------
    model_uri : str
        ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``; an alias is followed to its version.
    batch : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows without labels: the features, and the row id if ``init`` was given one.
    at : str or datetime, optional
        Time of the batch, UTC if it has no zone; now by default.

    Returns
    -------
    MSEEstimate
        The same batch gives the same estimate, and is logged once.

    Raises
    ------
    InvalidInputError
        If the version has no check, or a column is missing.
    """
    return _logged(model_uri, batch, at)[0]


def _logged(
    model_uri: str, batch: Any, at: str | datetime | None
) -> tuple[MSEEstimate, BatchRecord]:
    """Return the estimate on a batch and its record, which is logged if it is new."""
    client = MlflowClient()
    version = resolve(model_uri, client)
    check = load_check(version)
    row_id = check.schema.row_id
    table = read_table(batch, columns=(*check.schema.features, row_id), row_id=row_id)
    features = check.schema.features_of(table)
    prediction = LoadedModel.load(version.uri).predict(features, binary=check.schema.binary)
    ids = row_ids(table, row_id)
    digest = digest_of(features, prediction, ids)
    timestamp = timestamp_of(at, digest)
    result = check.consensus.estimate(features, prediction)
    store = MonitorStore(version, client)
    known = {record.digest: record for record in store.records()}
    if digest in known and known[digest].logged:
        return result, known[digest]
    record = known.get(digest) or BatchRecord(
        digest=digest,
        step=len(known),
        timestamp=timestamp,
        n=len(table),
        estimate=result.to_dict(),
        moved=check.schema.moved(features),
    )
    if not result.is_finite:
        return result, record
    one_step = check.one_step.estimate(features, prediction).mse
    record, metrics = store.claim(record, estimate_metrics(result, one_step))
    if record.logged:
        return result, record
    store.keep_predictions(digest, ids, pd.Series(prediction))
    store.write(record)
    store.log(record, metrics)
    store.write(record.mark(logged=True))
    return result, record


def compare(
    champion: str, challenger: str, batch: Any, *, at: str | datetime | None = None
) -> ModelComparison:
    """Estimate the error of two models on the same batch, log both, and decide over all batches.

    Parameters
    ----------
    champion, challenger : str
        As ``model_uri`` in :func:`estimate`.
    batch : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows with the features of both.
    at : str or datetime, optional
        Time of the batch, now by default; one that the champion has already keeps its time.

    Returns
    -------
    ModelComparison
        Its verdict is "inconclusive" unless the batches that both models have say otherwise.

    Raises
    ------
    InvalidInputError
        As :func:`estimate`, or if both are the same version.
    """
    client = MlflowClient()
    first, second = resolve(champion, client).uri, resolve(challenger, client).uri
    if first == second:
        raise InvalidInputError(
            f"challenger must be another version than the champion; got {first!r} twice. "
            "Check the aliases."
        )
    table = batch if is_spark_frame(batch) else read_table(batch)
    ours, record = _logged(first, table, at)
    # at the champion's time: batches are paired by it, and the champion may have had this one
    theirs, _ = _logged(second, table, datetime.fromtimestamp(record.timestamp // 1000, UTC))
    return decide(ours, theirs, records(first), records(second))


def realize(model_uri: str, labelled: Any) -> Coverage:
    """Log the realized error of every batch whose labels are all there.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`.
    labelled : data frame (pandas, Spark) or path of a parquet or CSV file
        Row id and target of rows of any number of batches.

    Returns
    -------
    Coverage
        How many of the realized batches lie in their interval so far.

    Raises
    ------
    InvalidInputError
        If ``init`` was given no row id, or a column is missing, or a row id has two labels.
    """
    client = MlflowClient()
    version = resolve(model_uri, client)
    schema = load_schema(version)
    columns = (schema.row_id, schema.target)
    labels = late_labels(
        read_table(labelled, columns=columns, row_id=schema.row_id), schema.row_id, schema.target
    )
    store = MonitorStore(version, client)
    for record in store.records():
        if record.realized is not None or not record.logged:
            continue
        rows = joined(store.predictions(record.digest), labels)
        if len(rows) < record.n:
            continue
        realized = float(((rows["label"] - rows[PREDICTION]) ** 2).mean())
        store.log(record, realized_metrics(record.estimate["mse"], realized))
        store.write(record.mark(realized=realized))
    return Coverage.of(store.records())


def records(model_uri: str) -> list[BatchRecord]:
    """Return the monitored batches of a version in the order of their time."""
    client = MlflowClient()
    return MonitorStore(resolve(model_uri, client), client).records()


def report(model_uri: str, path: str | Path, *, thresholds: Sequence[float] = ()) -> Path:
    """Write one self-contained HTML page about a version; log it and its figure to the monitor run.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`.
    path : str or path
        File to write.
    thresholds : sequence of float, default ()
        Errors that are drawn as lines.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the version has no check, or no batch yet.
    """
    client = MlflowClient()
    version = resolve(model_uri, client)
    check_uri(version)
    store = MonitorStore(version, client)
    batches = store.records()
    if not batches:
        raise InvalidInputError(
            f"model_uri must be a version with a batch; got {version.uri!r}. Make one with: "
            f"trueup monitor run {version.uri} --batch FILE."
        )
    figure = draw_series(batches, thresholds)
    page = replace_file(path, render_report(version.uri, batches, figure))
    run_id = store.run().info.run_id
    client.log_artifact(run_id, str(page), "trueup")
    client.log_text(run_id, figure, "trueup/monitor.svg")
    return page


def status() -> list[Mapping[str, Any]]:
    """Return the latest batch of every monitored version: ``model``, ``version``, ``batch``."""
    experiments = [
        experiment.experiment_id
        for experiment in mlflow.search_experiments(filter_string="name LIKE 'trueup/%'")
    ]
    if not experiments:
        return []
    runs = mlflow.search_runs(
        experiments,
        f"tags.`{ROLE_TAG}` = '{MONITOR_ROLE}' and metrics.{ESTIMATED} >= 0",
        output_format="list",
        max_results=10_000,
    )
    return [
        {
            "model": run.data.tags[MODEL_TAG],
            "version": run.data.tags[VERSION_OF_MODEL_TAG],
            "batch": records_of(run)[-1],
        }
        for run in runs
    ]
