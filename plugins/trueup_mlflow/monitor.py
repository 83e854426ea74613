"""Monitor registered models: estimated error before labels arrive, realized error after.

The scheduler is the user's own: a cron job or an orchestrator calls :func:`estimate` with each
batch. No estimate sees a change of the target given the features; :func:`realize` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup_mlflow.check_registry import (
    ReferenceKind,
    describe_reference,
    load_check,
    register_check,
    train_check,
)
from trueup_mlflow.items import ROLE_TAG
from trueup_mlflow.monitor_items import (
    ESTIMATED,
    MODEL_TAG,
    MONITOR_ROLE,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
    estimate_metrics,
    realized_metrics,
    timestamp_of,
)
from trueup_mlflow.monitor_report import Coverage, render_report
from trueup_mlflow.monitor_store import PREDICTION, ROW_ID, MonitorStore, records_of
from trueup_mlflow.registered_model import LoadedModel, resolve

__all__ = ["estimate", "init", "realize", "records", "report", "status"]


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
    reference : data frame or path of a parquet or CSV file
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
    table = read_table(reference)
    schema = describe_reference(table, target, row_id)
    check = train_check(LoadedModel.load(version.uri), table, schema, reference_is)
    return register_check(check, version, client)


def estimate(model_uri: str, batch: Any, *, at: str | datetime | None = None) -> MSEEstimate:
    """Estimate the error of a model on a batch and log it.

    Parameters
    ----------
    model_uri : str
        ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS``; an alias is followed to its version.
    batch : data frame or path of a parquet or CSV file
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
    client = MlflowClient()
    version = resolve(model_uri, client)
    check = load_check(version)
    table = read_table(batch)
    features = check.schema.features_of(table)
    prediction = LoadedModel.load(version.uri).predict(features, binary=check.schema.binary)
    ids = _row_ids(table, check.schema.row_id)
    digest = _digest(features, prediction, ids)
    result = check.consensus.estimate(features, prediction)
    store = MonitorStore(version, client)
    known = {record.digest: record for record in store.records()}
    if digest in known and known[digest].logged:
        return result
    record = known.get(digest) or BatchRecord(
        digest=digest,
        step=len(known),
        timestamp=timestamp_of(at, digest),
        n=len(table),
        estimate=result.to_dict(),
        moved=check.schema.moved(features),
    )
    store.keep_predictions(digest, ids, pd.Series(prediction))
    store.write(record)
    one_step = check.one_step.estimate(features, prediction).mse
    store.log(record, estimate_metrics(result, one_step))
    store.write(record.mark(logged=True))
    return result


def realize(model_uri: str, labelled: Any) -> Coverage:
    """Log the realized error of every batch whose labels are all there.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`.
    labelled : data frame or path of a parquet or CSV file
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
    schema = load_check(version).schema
    labels = _labels(read_table(labelled), schema.row_id, schema.target)
    store = MonitorStore(version, client)
    for record in store.records():
        if record.realized is not None or not record.logged:
            continue
        joined = store.predictions(record.digest).merge(labels, on=ROW_ID)
        if len(joined) < record.n:
            continue
        realized = float(((joined["label"] - joined[PREDICTION]) ** 2).mean())
        store.log(record, realized_metrics(record.estimate["mse"], realized))
        store.write(record.mark(realized=realized))
    return Coverage.of(store.records())


def records(model_uri: str) -> list[BatchRecord]:
    """Return the monitored batches of a version in the order of their time."""
    client = MlflowClient()
    return MonitorStore(resolve(model_uri, client), client).records()


def report(model_uri: str, path: str | Path) -> Path:
    """Write one self-contained HTML page about a version, and log it to the monitor run.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`.
    path : str or path
        File to write.

    Returns
    -------
    Path
        The file.
    """
    client = MlflowClient()
    version = resolve(model_uri, client)
    store = MonitorStore(version, client)
    page = Path(path)
    page.write_text(render_report(version.uri, store.records()), encoding="utf-8")
    client.log_artifact(store.run().info.run_id, str(page), "trueup")
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


def read_table(source: Any) -> pd.DataFrame:
    """Return a data frame as it is, or read a parquet or CSV file.

    Raises
    ------
    InvalidInputError
        If the file is of another kind or cannot be read.
    """
    if isinstance(source, pd.DataFrame):
        return source
    path = Path(source)
    if path.suffix not in (".parquet", ".csv", ".gz"):
        raise InvalidInputError(
            f"file must end in .parquet, .csv or .csv.gz; got {path.name!r}. Convert it."
        )
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as failure:
        raise InvalidInputError(
            f"file must be readable; got {str(path)!r}: {failure}. Check the path."
        ) from failure


def _row_ids(table: pd.DataFrame, column: str | None) -> pd.Series:
    if column is None:
        return pd.Series(np.arange(len(table)))
    if column not in table:
        raise InvalidInputError(
            f"batch must have the row id column {column!r}; got {list(table.columns)}. Add it."
        )
    return table[column].reset_index(drop=True)


def _labels(table: pd.DataFrame, row_id: str | None, target: str) -> pd.DataFrame:
    if row_id is None:
        raise InvalidInputError(
            "row_id must have been given to init to join labels; got None. Run init with row_id."
        )
    missing = [name for name in (row_id, target) if name not in table]
    if missing:
        raise InvalidInputError(
            f"labelled must have the columns {row_id!r} and {target!r}; got none of {missing}. "
            "Add them."
        )
    labels = table[[row_id, target]].set_axis([ROW_ID, "label"], axis=1).dropna()
    repeated = labels[ROW_ID].duplicated()
    if repeated.any():
        raise InvalidInputError(
            f"labelled must have one label for each row id; got two for "
            f"{labels[ROW_ID][repeated].iloc[0]!r}. Drop the repeats."
        )
    return labels


def _digest(features: pd.DataFrame, prediction: np.ndarray[Any, Any], ids: pd.Series) -> str:
    hashed = pd.util.hash_pandas_object(
        features.reset_index(drop=True).assign(_id=ids, _prediction=prediction), index=False
    )
    return hashlib.blake2b(hashed.to_numpy().tobytes(), digest_size=8).hexdigest()
