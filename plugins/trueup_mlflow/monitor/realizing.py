"""Realized errors of batches from labels that accumulate over files and days."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.batch.labels import (
    LABEL,
    LateLabels,
    errors_by_level,
    late_labels,
    merged,
    n_corrected,
    of_batch,
    realized_error,
)
from trueup_mlflow.monitor.batch.tables import read_table
from trueup_mlflow.monitor.check.check_registry import load_schema
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.judging.verdict import Coverage, Realized
from trueup_mlflow.monitor.store import ROW_ID, MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord, realized_metrics
from trueup_mlflow.write.segment_items import realized_segment_metrics

MIN_LABELLED = 0.8


@dataclass(frozen=True)
class _Outcome:
    """What labels did to one batch."""

    record: BatchRecord
    matched: int
    corrected: int = 0


def realize(model_uri: str, labelled: Any, *, min_labelled: float = MIN_LABELLED) -> Coverage:
    """Log the realized error of every batch of which enough rows have a label by now.

    Labels accumulate: those of one batch may come in several files and on several days. A row whose
    label is missing is skipped; a label that comes again replaces the earlier one.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`.
    labelled : data frame (pandas, Spark) or path of a parquet or CSV file
        Row id and target of rows of any number of batches.
    min_labelled : float, default 0.8
        Share of a batch's rows whose labels must be there, above 0 and at most 1.

    Returns
    -------
    Coverage
        How many of the realized batches lie in their interval so far, how many ids matched, and
        how many batches still wait for labels.

    Raises
    ------
    InvalidInputError
        If ``init`` was given no row id, a column is missing, a row id has two labels, or no row id
        is one of a batch.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> _ = monitor.estimate("models:/demand/1", january, at="2026-01-31")
    >>> type(monitor.realize("models:/demand/1", january_labels)).__name__
    'Coverage'
    """
    if not 0.0 < min_labelled <= 1.0:
        raise InvalidInputError(
            "min_labelled must be above 0 and at most 1", str(min_labelled), "Give a share of rows."
        )
    client = MlflowClient()
    version = resolve(model_uri, client)
    schema = load_schema(version)
    columns = (schema.row_id, schema.target)
    table = read_table(labelled, columns=columns, row_id=schema.row_id, kind=schema.id_kind)
    labels = late_labels(table, schema)
    store = MonitorStore(version, client)
    records = [record for record in store.records() if record.logged]
    outcomes = [_realize(store, record, labels, min_labelled) for record in records]
    matched = sum(outcome.matched for outcome in outcomes)
    if len(labels.rows) and not matched:
        raise InvalidInputError(
            "labelled must have row ids of a batch",
            f"{len(labels.rows)} ids of none of the {len(records)} batches, the first "
            f"{labels.rows.iloc[0, 0]!r}",
            "Check model and file.",
        )
    state = store.describe()
    found = Coverage.of([outcome.record for outcome in outcomes])
    waiting = sum(outcome.record.realized is None for outcome in outcomes)
    unknown = max(len(labels.rows) - matched, 0)
    return replace(
        found,
        matched=matched,
        unknown=unknown,
        missing=labels.missing,
        waiting=waiting,
        state=state.sentence,
        corrected=sum(outcome.corrected for outcome in outcomes),
        realized=tuple(
            Realized(one.record.day, one.record.metric, value, one.record.covered)
            for one in outcomes
            if one.matched and (value := one.record.realized) is not None
        ),
    )


def _realize(
    store: MonitorStore, record: BatchRecord, labels: LateLabels, min_labelled: float
) -> _Outcome:
    """Keep the labels of one batch, and log its error where there are enough of them."""
    predictions = store.predictions(record.digest)
    new = of_batch(predictions, labels.rows)
    if new.empty and record.realized is not None:
        return _Outcome(record, 0)
    kept = store.labels(record.digest) if record.labelled or len(new) else None
    together = merged(kept, new)
    changed = len(new) > 0 and (kept is None or _values(together) != _values(kept))
    corrected = 0 if kept is None else n_corrected(kept, new)
    if changed:
        _ = realized_error(predictions, new, record.metric)  # what it refuses must not be kept
        store.keep_labels(record.digest, new)
    if changed or record.realized is None:  # a lower share may be asked for now
        record = _updated(store, record, predictions, together, min_labelled)
    return _Outcome(record, len(new), corrected)


def _values(labels: pd.DataFrame) -> dict[str, float]:
    return dict(zip(labels[ROW_ID], labels[LABEL], strict=True))


def _updated(
    store: MonitorStore,
    record: BatchRecord,
    predictions: pd.DataFrame,
    labels: pd.DataFrame,
    min_labelled: float,
) -> BatchRecord:
    """Return the record with its labels counted; a new realized value is logged."""
    changed = record.mark(labelled=len(labels))
    enough = len(labels) >= min_labelled * record.n and len(labels) > 0
    if enough:
        value = realized_error(predictions, labels, record.metric)
        known = record.realized
        if known is None or not np.isclose(known, value, rtol=1e-12, atol=0.0):
            earlier = record.corrections if known is None else (*record.corrections, known)
            changed = changed.mark(realized=value, corrections=earlier)
            whole = realized_metrics(record.metric, record.value, value)
            levels = realized_segments(store, changed, predictions, labels, min_labelled)
            store.log_realized(changed, {**whole, **levels})
    if changed != record:
        store.write(changed)
    return changed


def realized_segments(
    store: MonitorStore,
    record: BatchRecord,
    predictions: pd.DataFrame,
    labels: pd.DataFrame,
    min_labelled: float = MIN_LABELLED,
) -> dict[str, float]:
    """Return the realized errors of the levels that ``run --segment`` estimated, as metrics."""
    errors: dict[str, float] = {}
    for levels in store.segments(record.digest):
        errors |= errors_by_level(predictions, labels, levels, min_labelled, record.metric)
    return realized_segment_metrics(record.metric, errors)
