"""Times of rows: numbers, or instants of datetimes and of text in ISO 8601 or a given format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import LARGEST_FLOAT
from trueup.errors import InvalidInputError
from trueup.read.columns import refuse_missing, require_shape, shown

_ISO = "numbers or datetimes, or text in ISO 8601 such as 2024-01-31 or 2024-01-31T12:00+01:00"


def read_times(times: Any, n: int | None = None, *, time_format: str | None = None) -> NDArray[Any]:
    """Return times of shape (n,): numbers as they are, dates and datetimes as datetime64.

    Text is in ISO 8601, or in a ``time_format`` as of :meth:`datetime.datetime.strptime`, by which
    integers are read as well: ``"%Y%m%d"`` reads 20240131. Datetimes with a zone become instants of
    UTC, whether or not the zones differ. Missing times are refused, and the order of day and month
    is never guessed.

    Examples
    --------
    >>> read_times(["2024-01-31T23:30:00-05:00", "2024-02-01T05:00:00+01:00"]).astype(str).tolist()
    ['2024-02-01T04:30:00.000000', '2024-02-01T04:00:00.000000']
    >>> read_times(["31.01.2024"], time_format="%d.%m.%Y").astype(str).tolist()
    ['2024-01-31']
    """
    array = _array_of_times(times)
    if time_format is not None and array.dtype.kind in "iu":
        array = array.astype(str)
    if array.dtype.kind in "OUT":
        refuse_missing(array, array, "times")
        array = _datetimes(array.tolist(), time_format)
    elif time_format is not None:
        raise InvalidInputError(
            f"times must be text to be read by {time_format!r}",
            f"dtype {array.dtype}",
            "Drop the format.",
        )
    return _checked(array, n)


def is_in_other_zone(times: Any, *, time_format: str | None = None) -> bool:
    """Return whether a column of times, all with a zone or none, has one that is not UTC.

    Examples
    --------
    >>> is_in_other_zone(["2024-01-31T23:30:00Z", "2024-01-31T23:30:00-05:00"])
    True
    >>> is_in_other_zone(["2024-01-31T23:30:00"])
    False
    """
    zone = getattr(getattr(times, "dt", times), "tz", None)
    if zone is not None:
        return str(zone) != "UTC"
    array = np.asarray(times)
    parse = _parser(time_format)
    read = (parse(value) if isinstance(value, str) else value for value in array.tolist())
    moments = takewhile(lambda one: isinstance(one, datetime) and one.tzinfo is not None, read)
    return any(one.utcoffset() for one in moments if isinstance(one, datetime))


def _array_of_times(times: Any) -> NDArray[Any]:
    array = np.asarray(_in_utc(times))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInputError(
            "times must be one-dimensional", f"shape {array.shape}", "Pass one value for each row."
        )
    refuse_missing(times, array, "times")
    return array


def _in_utc(times: Any) -> Any:
    """Return a column or index of pandas that has a zone in UTC, at the speed of its own code."""
    clock: Any = getattr(times, "dt", times)
    if getattr(clock, "tz", None) is None or not hasattr(clock, "tz_convert"):
        return times
    instants = clock.tz_convert("UTC")
    return getattr(instants, "dt", instants).tz_localize(None)


def _checked(array: NDArray[Any], n: int | None) -> NDArray[Any]:
    if array.dtype.kind not in "fiuM":
        raise InvalidInputError(
            "times must be numbers or datetimes", f"dtype {array.dtype}", "Convert the column."
        )
    if n is not None:
        require_shape("times", array, n)
    missing = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    if missing.any():
        index = int(np.flatnonzero(missing)[0])
        raise InvalidInputError(
            "times must not be missing", f"{array[index]} at index {index}", "Drop or fix the row."
        )
    return array


def _datetimes(values: list[Any], time_format: str | None) -> NDArray[Any]:
    """Turn dates, datetimes and text into datetime64: days where none has an hour."""
    if values and all(isinstance(value, str) for value in values):
        parse = _parser(time_format)
        read = {text: parse(text) for text in dict.fromkeys(values)}  # times repeat
        _refuse_unread(values, read, time_format)
        values = [read[text] for text in values]
    if not all(isinstance(value, date) for value in values):
        number = all(
            isinstance(value, int | float) and abs(value) <= LARGEST_FLOAT for value in values
        )
        return np.array(values, dtype=np.float64 if number else object)
    has_zone = [isinstance(value, datetime) and value.tzinfo is not None for value in values]
    if any(has_zone) and not all(has_zone):
        index = has_zone.index(not has_zone[0])
        raise InvalidInputError(
            "times must all have a zone, or none",
            f"{shown(str(values[0]))} and {shown(str(values[index]))} at index {index}",
            "Give each the same kind.",
        )
    if has_zone and has_zone[0]:
        values = [value.astimezone(UTC).replace(tzinfo=None) for value in values]
    are_days = not any(isinstance(value, datetime) for value in values)
    return np.array(values, dtype=f"datetime64[{'D' if are_days else 'us'}]")


def _parser(time_format: str | None) -> Callable[[str], date | None]:
    def parse(text: str) -> date | None:
        try:
            return _from_iso(text) if time_format is None else _by_format(text, time_format)
        except ValueError:
            return None

    return parse


def _from_iso(text: str) -> date:
    # Python also reads 20240131 and weeks, which may as well be numbers of something else
    if len(text) < 10 or text[4] != "-" or text[7] != "-":
        raise ValueError(text)
    return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)


def _by_format(text: str, time_format: str) -> date:
    moment = datetime.strptime(text, time_format)
    has_hour = any(f"%{letter}" in time_format for letter in "HIcXsz")
    return moment if has_hour else moment.date()


def _refuse_unread(
    values: list[str], read: dict[str, date | None], time_format: str | None
) -> None:
    wrong = next((text for text, moment in read.items() if moment is None), None)
    if wrong is None:
        return
    rule = _ISO if time_format is None else f"of the format {time_format!r}"
    fix = (
        'Pass datetimes, or say the format such as "%d.%m.%Y" with time_format.'
        if time_format is None
        else "Correct the format or the row."
    )
    raise InvalidInputError(
        f"times must be {rule}", f"{shown(wrong)} at index {values.index(wrong)}", fix
    )
