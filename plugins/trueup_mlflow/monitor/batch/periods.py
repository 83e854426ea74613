"""A table cut into calendar periods: one of pandas, a file, or a data frame of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pandas as pd

from trueup.errors import InvalidInputError
from trueup.read.times import read_times
from trueup_mlflow.monitor.batch.tables import is_spark_frame, quoted, read_table

Period = Literal["day", "week", "month"]

_FREQUENCY: dict[Period, str] = {"day": "D", "week": "W", "month": "M"}
_SPARK_TYPES = ("date", "timestamp", "timestamp_ntz")


def periods_of(
    table: Any, time_column: str, period: Period, time_format: str | None = None
) -> Iterator[tuple[pd.Period, Any]]:
    """Yield each period of a table, in order, with its rows, which must hold a date each.

    Rows of Spark stay a data frame of Spark, and their periods are those of its session's zone.
    """
    source = table if is_spark_frame(table) else read_table(table)
    if time_column not in source.columns:
        raise InvalidInputError(
            "time_column must be a column of the batch", repr(time_column), "Check the spelling."
        )
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
            "time_column must hold dates", str(kind), "Write them as 2026-01-31."
        )
    if column.isna().any():
        raise _no_date(time_column, f" at index {column.isna().to_numpy().argmax()}")
    try:
        times = pd.Series(read_times(column, time_format=time_format), index=rows.index)
    except InvalidInputError as failure:
        raise InvalidInputError(f"time_column must hold dates; {failure}") from None
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
