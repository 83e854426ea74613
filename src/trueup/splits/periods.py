"""Lengths of periods: numbers, durations such as "7d", and calendar months."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

MONTH = "month"

_NANOSECONDS = {
    "d": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "min": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
_UNIT_OF = {"day": "d", "hour": "h", "minute": "min", "second": "s"}  # and their plurals
_TEXT = re.compile(r"(\d+)\s*([a-z]+)").fullmatch


def read_period(period: Any) -> float | str:
    """Return a positive number, "month", or a duration as text, the same for equal durations.

    Text is "month", or a whole number and a unit: d, h, min, s, ms, us, ns, or w for weeks.
    Durations are timedeltas of Python, numpy or pandas too.

    Examples
    --------
    >>> from datetime import timedelta
    >>> [read_period(p) for p in ("168h", timedelta(weeks=1), "1w", "90 min", "month", 30.0)]
    ['7d', '7d', '7d', '90min', 'month', 30]
    """
    if isinstance(period, str) and period == MONTH:
        return MONTH
    nanoseconds = _nanoseconds_of(period)
    if nanoseconds is not None and nanoseconds > 0:
        return _as_text(nanoseconds)
    is_number = isinstance(period, Real) and not isinstance(period, bool | np.timedelta64)
    if nanoseconds is None and is_number and 0 < period <= sys.float_info.max:
        number = float(period)
        return int(number) if number.is_integer() else number
    raise InvalidInputError(
        'period must be a positive number or "month"',
        repr(period),
        (
            'Give a number for times that are numbers, and a duration such as "7d", "12h", '
            '"30min" or a timedelta for datetimes.'
        ),
    )


def period_numbers(times: NDArray[Any], period: float | str) -> NDArray[Any]:
    """Return the period that each time falls into, in order of time.

    Refused are a number that meets datetimes, and a duration or a month that meets numbers.
    """
    duration, are_datetimes = duration_of(period), times.dtype.kind == "M"
    if are_datetimes and not isinstance(period, str):
        raise InvalidInputError(
            "period must be a duration where times are datetimes",
            repr(period),
            f'Say its unit, such as "{period:g}d" or "{period:g}h".',
        )
    if not are_datetimes and isinstance(period, str):
        raise InvalidInputError(
            f"times must be datetimes with period={period!r}",
            f"dtype {times.dtype}",
            "Convert them with numpy.datetime64, or give the format they are written in.",
        )
    if period == MONTH:
        return times.astype("datetime64[M]")
    if are_datetimes and np.datetime_data(times.dtype)[0] in ("Y", "M"):
        times = times.astype("datetime64[D]")  # numpy divides no months by days
    times = times.astype(np.int64) if times.dtype.kind == "i" else times  # int8 would overflow
    elapsed = times - times.min()
    return np.asarray(np.floor(elapsed / period) if duration is None else elapsed // duration)


def duration_of(period: float | str) -> np.timedelta64 | None:
    """Return a duration that ``read_period`` gave; None for a number and for months."""
    found = _TEXT(period) if isinstance(period, str) else None
    if found is None:
        return None
    unit: Any = {"d": "D", "min": "m"}.get(found[2], found[2])  # as numpy says it
    return np.timedelta64(int(found[1]), unit)


def _nanoseconds_of(period: Any) -> int | None:
    if isinstance(period, np.timedelta64):
        return _of_numpy(period)
    if isinstance(period, timedelta):  # pandas' Timedelta is one, with nanoseconds of its own
        microseconds = (period.days * 86_400 + period.seconds) * 10**6 + period.microseconds
        return microseconds * 1_000 + getattr(period, "nanoseconds", 0)
    found = _TEXT(period.strip().lower()) if isinstance(period, str) else None
    if found is None:
        return None
    count, word = int(found[1]), found[2]
    if word in ("w", "week", "weeks"):
        return count * 7 * _NANOSECONDS["d"]
    unit = _UNIT_OF.get(word.removesuffix("s"), word)
    return count * _NANOSECONDS[unit] if unit in _NANOSECONDS else None


def _of_numpy(period: np.timedelta64) -> int | None:
    if np.isnat(period) or np.datetime_data(period.dtype)[0] in ("Y", "M", "generic"):
        return None  # years and months are of no fixed length
    return int(period.astype("timedelta64[ns]").astype(np.int64))


def _as_text(nanoseconds: int) -> str:
    """Write a duration in its largest unit that leaves a whole number."""
    unit = next(u for u, size in _NANOSECONDS.items() if nanoseconds % size == 0)
    return f"{nanoseconds // _NANOSECONDS[unit]}{unit}"
