"""Estimates for the levels of a column of a batch."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pandas as pd

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup_mlflow.monitor.batch.tables import read_table
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.write.monitor_items import BatchRecord, segment_metrics

MIN_ROWS = 30
MAX_LEVELS = 50

_NOT_IN_KEYS = re.compile(r"[^\w\-. /]")


def estimate_segments(
    model_uri: str, batch: Any, *, segment: str, at: str | datetime | None = None
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log a batch, and each level of a column that has 30 rows of it at least.

    Parameters
    ----------
    model_uri, batch, at
        As in :func:`trueup_mlflow.monitor.estimate`; Spark data frames are not taken.
    segment : str
        Column of the levels, which need not be a feature.

    Returns
    -------
    list of (str, MSEEstimate)
        The batch as a whole under "", then each level. The levels learn nothing of their own: the
        log correction of the whole batch, which its labels taught, is theirs too.

    Raises
    ------
    InvalidInputError
        If the column is missing, or has more than 50 levels of 30 rows.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> by_hour = february.assign(part=["day", "night"] * 75)
    >>> found = monitor.estimate_segments("models:/demand/1", by_hour, segment="part")
    >>> [level for level, _ in found]
    ['', 'day', 'night']
    """
    session = Session.open(model_uri)
    schema = session.check.schema
    rows = read_table(batch, row_id=schema.row_id, kind=schema.id_kind)
    if segment not in rows:
        raise InvalidInputError(
            "segment must be a column of the batch", repr(segment), "Check the spelling."
        )
    counts = rows[segment].value_counts()
    levels = sorted(counts[counts >= MIN_ROWS].index, key=str)
    if len(levels) > MAX_LEVELS:
        raise InvalidInputError(
            f"segment must have at most {MAX_LEVELS} levels of {MIN_ROWS} rows",
            f"{len(levels)}",
            "Group them.",
        )
    record = session.record(rows, at=at)
    found = [
        (str(level), _level(session, record, rows[rows[segment] == level])) for level in levels
    ]
    for level, estimate in found:  # once, however often the batch is given
        key = _NOT_IN_KEYS.sub("_", f"{segment}/{level}")
        session.store.log(record, segment_metrics(key, estimate))
    return [("", record.as_estimate()), *found]


def _level(session: Session, record: BatchRecord, rows: pd.DataFrame) -> MSEEstimate:
    schema = session.check.schema
    estimate = session.check.consensus.estimate(
        schema.features_of(rows), session.model.predict(rows, schema)
    )
    factor = record.number("mse") / record.raw["mse"] if record.raw.get("mse") else 1.0
    return estimate.scaled(factor)
