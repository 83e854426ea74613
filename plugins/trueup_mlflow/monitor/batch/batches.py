"""Batches of one table, by calendar period or by number of rows; and the missing checks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Literal

import pandas as pd
from mlflow.tracking import MlflowClient

from trueup.arguments import whole_number
from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.read.times import is_in_other_zone, read_times
from trueup.user_warning import warn_user
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.schema import Schema
from trueup_mlflow.monitor.batch.tables import is_spark_frame, quoted, read_table, require_column
from trueup_mlflow.monitor.check.check_registry import load_schema
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.write.monitor_items import CHECK_URI_TAG, timestamp_of
from trueup_mlflow.write.runs import store_of

_NAMED = 5


def estimate_periods(
    model_uri: str,
    table: Any,
    *,
    time_column: str,
    period: Period = "month",
    time_format: str | None = None,
    predicted: str | None = None,
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log each calendar period of a table as a batch of its own.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`.
    table : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows of any number of periods. Of Spark, one period at a time is collected.
    time_column : str
        Column of the times; it is a feature only if the reference had it. Times with a zone or an
        offset are cut in UTC.
    period : {"day", "week", "month"}, default "month"
        Calendar period; the end of it is the time of the batch.
    time_format : str, optional
        Format of times that are text, as of ``strptime``; ISO 8601 by default.
    predicted : str, optional
        As in :func:`trueup_mlflow.monitor.estimate`.

    Returns
    -------
    list of (str, MSEEstimate)
        The period's name and its estimate, in order.

    Raises
    ------
    InvalidInputError
        If the version has no check, the column is missing, or a row of it holds no date.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> import pandas as pd
    >>> dated = february.assign(day=pd.date_range("2026-02-01", periods=150, freq="h"))
    >>> [name for name, _ in monitor.estimate_periods(
    ...     "models:/demand/1", dated, time_column="day", period="month"
    ... )]
    ['2026-02']
    """
    session, found, labels = None, [], []
    schema = load_schema(resolve(model_uri, MlflowClient()))
    rows = table if is_spark_frame(table) else _rows(table, schema)
    for label, part in periods_of(rows, time_column, period, time_format):
        # Opened here, since a table without times needs none.
        session = session or Session.open(model_uri, predicted=predicted)
        end = label.end_time.to_pydatetime(warn=False)
        found.append((str(label), session.estimate(part, at=end)))
        labels.append(label)
    say_empty(labels)
    return found


def say_empty(labels: list[pd.Period]) -> None:
    """Name the periods between the first and the last that have no rows."""
    known = sorted(set(labels))
    counts = [(b.ordinal - a.ordinal) // a.freq.n - 1 for a, b in pairwise(known)]
    empty = (str(a + i + 1) for a, n in zip(known, counts, strict=False) for i in range(n))
    named = list(islice(empty, _NAMED))
    if named:
        left = sum(counts) - len(named)
        more = f" and {left} more" if left else ""
        them = "it" if sum(counts) == 1 else "them"
        warn_user(f"no rows of {', '.join(named)}{more}: there is no batch of {them}.")


def estimate_chunks(
    model_uri: str,
    table: Any,
    *,
    rows: int,
    at: str | datetime | None = None,
    predicted: str | None = None,
) -> list[tuple[str, MSEEstimate]]:
    """Estimate and log each run of consecutive rows of a table as a batch of its own.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`.
    table : data frame of pandas or path of a parquet or CSV file
        Rows in the order in which they came.
    rows : int
        Rows of a batch; the last one may have fewer.
    at : str or datetime, optional
        Time of the first batch, now by default; each further one is a second later.
    predicted : str, optional
        As in :func:`trueup_mlflow.monitor.estimate`.

    Returns
    -------
    list of (str, MSEEstimate)
        The first and last row, counted from 0, and the estimate.

    Raises
    ------
    InvalidInputError
        If ``rows`` is below 1, or the rows have no order, as those of Spark.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> parts = monitor.estimate_chunks("models:/demand/1", february, rows=75, at="2026-02-28")
    >>> len(parts)
    2
    """
    rows = whole_number("rows", rows, 1, "Give the size of a batch.")
    if is_spark_frame(table):
        raise InvalidInputError(
            "table must have an order to be cut into chunks of rows",
            "a Spark data frame",
            "Cut it by time with estimate_periods, or collect its rows in an order that means one.",
        )
    session = Session.open(model_uri, predicted=predicted)
    whole = _rows(table, session.check.schema)
    start = datetime.fromtimestamp(timestamp_of(at, "00000000") / 1000.0, UTC)
    found = []
    for number, first in enumerate(range(0, len(whole), rows)):
        part, moment = whole.iloc[first : first + rows], start + timedelta(seconds=number)
        found.append((f"{first}-{first + len(part) - 1}", session.estimate(part, at=moment)))
    return found


def _rows(table: Any, schema: Schema) -> pd.DataFrame:
    """Return a table with the row ids that the reference had, text as it is written."""
    return read_table(table, row_id=schema.row_id, kind=schema.id_kind)


def init_missing(name: str, reference: Any, **wishes: Any) -> list[str]:
    """Give every version of a registered model that has no check one; return their URIs.

    ``wishes`` are the keywords of :func:`trueup_mlflow.monitor.init`, but for ``predicted``.

    Raises
    ------
    InvalidInputError
        If the registry knows no such model, ``predicted`` is given, or as
        :func:`trueup_mlflow.monitor.init` does.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> monitor.init_missing("demand", held_out, target="y", row_id="id")  # it has its check
    []
    """
    if wishes.get("predicted") is not None:
        raise InvalidInputError(
            "predicted must be left out for all versions, as a column is of one of them",
            repr(wishes["predicted"]),
            "Make the check of each version by its own init.",
        )
    client = MlflowClient()
    versions = client.search_model_versions(f"name='{name}'")
    if not versions:
        raise InvalidInputError(
            "name must be a registered model", repr(name), f"Check the name. {store_of(client)}"
        )
    return [
        monitor.init(f"models:/{name}/{version.version}", reference, **wishes)
        for version in sorted(versions, key=lambda version: int(version.version))
        if CHECK_URI_TAG not in version.tags
    ]


Period = Literal["day", "week", "month"]

_FREQUENCY: dict[Period, str] = {"day": "D", "week": "W", "month": "M"}
_SPARK_TYPES = ("date", "timestamp", "timestamp_ntz")


def periods_of(
    table: Any, time_column: str, period: Period, time_format: str | None = None
) -> Iterator[tuple[pd.Period, Any]]:
    """Yield each period of a table, in order, with its rows, which must hold a date each.

    Times with a zone or an offset are cut in UTC, which is said where they have another one.
    Rows of Spark stay a data frame of Spark, and their periods are those of its session's zone.
    """
    source = table if is_spark_frame(table) else read_table(table)
    require_column(source, time_column, "time_column")
    if is_spark_frame(source):
        return _of_spark(source, time_column, period)
    return _of_pandas(source, time_column, period, time_format)


def _of_pandas(
    rows: pd.DataFrame, time_column: str, period: Period, time_format: str | None
) -> Iterator[tuple[pd.Period, Any]]:
    column = rows[time_column]
    kind = column.dtype
    if pd.api.types.is_numeric_dtype(kind) and time_format is None:
        raise InvalidInputError(
            "time_column must hold dates",
            str(kind),
            'Write them as 2026-01-31, or say the format such as "%Y%m%d" with time_format.',
        )
    if column.isna().any():
        raise _no_date(time_column, f" at index {column.isna().to_numpy().argmax()}")
    try:
        times = pd.Series(read_times(column, time_format=time_format), index=rows.index)
    except InvalidInputError as failure:
        rule = failure.rule.replace("times must be numbers or datetimes", "times must hold dates")
        rule = "time_column" + rule.removeprefix("times")
        raise InvalidInputError(rule, failure.got, failure.mend) from None
    if is_in_other_zone(column, time_format=time_format):
        warn_user(
            f"periods are cut in UTC: the times of {time_column!r} have other zones or offsets. "
            "Write them as local times without a zone to cut by these."
        )
    yield from rows.groupby(times.dt.to_period(_FREQUENCY[period]))


def _of_spark(frame: Any, time_column: str, period: Period) -> Iterator[tuple[pd.Period, Any]]:
    found = dict(frame.dtypes)[time_column]
    if found not in _SPARK_TYPES:
        raise InvalidInputError(
            "time_column must be a date or timestamp of Spark", str(found), "Cast it."
        )
    first_day = f"date_format(date_trunc('{period}', {quoted(time_column)}), 'yyyy-MM-dd')"
    days = [row[0] for row in frame.selectExpr(first_day).distinct().collect()]
    if None in days:
        raise _no_date(time_column, "")
    for day in sorted(days):
        yield pd.Period(day, _FREQUENCY[period]), frame.where(f"{first_day} = '{day}'")


def _no_date(time_column: str, where: str) -> InvalidInputError:
    return InvalidInputError(
        "time_column must hold a date in every row",
        f"none in {time_column!r}{where}",
        "Drop such rows or give them a date.",
    )
