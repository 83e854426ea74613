"""Estimates for the levels of a column of a batch."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pandas as pd

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.user_warning import warn_user
from trueup_mlflow.monitor.batch.tables import read_table, require_column
from trueup_mlflow.monitor.realizing import realized_segments
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.monitor.store import ROW_ID, SEGMENT, MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_mlflow.write.segment_items import MIN_ROWS, segment_metrics

MAX_LEVELS = 50

_NOT_IN_KEYS = re.compile(r"[^\w\-. /]")


def estimate_segments(
    model_uri: str,
    batch: Any,
    *,
    segment: str,
    at: str | datetime | None = None,
    predicted: str | None = None,
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log a batch, and each level of a column that has 30 rows of it at least.

    Parameters
    ----------
    model_uri, batch, at, predicted
        As in :func:`trueup_mlflow.monitor.estimate`; Spark data frames are not taken.
    segment : str
        Column of the levels, which need not be a feature.

    Returns
    -------
    list of (str, MSEEstimate)
        The batch as a whole under "", then each level. The levels learn nothing of their own: the
        log correction of the whole batch, which its labels taught, is theirs too. Their realized
        errors are logged once enough of their rows have a label.

    Raises
    ------
    InvalidInputError
        If the column is missing, has more than 50 levels of 30 rows, or two levels whose names
        are the same as keys of MLflow.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> by_hour = february.assign(part=["day", "night"] * 75)
    >>> found = monitor.estimate_segments("models:/demand/1", by_hour, segment="part")
    >>> [level for level, _ in found]
    ['', 'day', 'night']
    """
    session = Session.open(model_uri, predicted=predicted)
    schema = session.check.schema
    rows = read_table(batch, row_id=schema.row_id, kind=schema.id_kind)
    require_column(rows, segment, "segment")
    keys = _keys(segment, rows[segment])
    counts = keys.value_counts()
    levels = sorted(counts[counts >= MIN_ROWS].index)
    if len(levels) > MAX_LEVELS:
        raise InvalidInputError(
            f"segment must have at most {MAX_LEVELS} levels of {MIN_ROWS} rows",
            f"{len(levels)}",
            "Group them.",
        )
    record = session.record(rows, at=at)
    _say_left_out(segment, keys, levels)
    found = {key: _level(session, record, rows[keys == key]) for key in levels}
    for key, estimate in found.items():  # once, however often the batch is given
        if estimate.is_finite:
            session.store.log(record, segment_metrics(key, estimate))
    if schema.row_id is not None and levels and record.logged:
        kept = pd.DataFrame({ROW_ID: rows[schema.row_id], SEGMENT: keys})[keys.isin(levels)]
        session.store.keep_segments(record.digest, segment, kept)
        _log_realized(session.store, record)
    names = dict(zip(keys, rows[segment], strict=True))
    return [("", record.as_estimate()), *((str(names[key]), one) for key, one in found.items())]


def _keys(segment: str, column: pd.Series) -> pd.Series:
    """Return the level of each row as keys of metrics have it, one for each; None where none is."""
    keys = {
        level: _NOT_IN_KEYS.sub("_", f"{segment}/{level}") for level in column.dropna().unique()
    }
    seen: dict[str, Any] = {}
    for level, key in keys.items():
        if key in seen:
            raise InvalidInputError(
                "segment must have levels that differ in letters and digits",
                f"{seen[key]!r} and {level!r}",
                "Rename one: keys of MLflow hold no other characters.",
            )
        seen[key] = level
    return column.astype(object).map(keys)


def _say_left_out(segment: str, keys: pd.Series, levels: list[str]) -> None:
    n = int((~keys.isin(levels)).sum())
    if n:
        warn_user(
            f"{n} of {len(keys)} rows have no level of {segment!r} with {MIN_ROWS} rows: they "
            "count in the whole batch only."
        )


def _log_realized(store: MonitorStore, record: BatchRecord) -> None:
    """Log the realized errors of levels that were asked for after the labels had come."""
    labels = store.labels(record.digest) if record.realized is not None else None
    if labels is not None:
        metrics = realized_segments(store, record, store.predictions(record.digest), labels)
        store.log_realized(record, metrics)


def _level(session: Session, record: BatchRecord, rows: pd.DataFrame) -> MSEEstimate:
    schema = session.check.schema
    estimate = session.check.consensus.estimate(
        schema.features_of(rows), session.model.predict(rows, schema)
    )
    factor = record.value / record.raw["mse"] if record.raw.get("mse") else 1.0
    return estimate.scaled(factor)
