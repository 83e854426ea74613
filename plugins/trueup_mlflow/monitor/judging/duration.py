"""Durations as they are written for gates: 36h, 2d, 1w."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from trueup.errors import InvalidInputError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(value: str | timedelta) -> timedelta:
    """Return a duration such as "36h", "2d" or "1w"; refuse any that is written otherwise."""
    found = None if isinstance(value, timedelta) else _DURATION.fullmatch(value.strip())
    with suppress(OverflowError):  # no number of days is that long, or nobody counted years then
        if found is not None:
            value = timedelta(**{_UNITS[found[2]]: float(found[1])})
        if isinstance(value, timedelta) and value >= timedelta(0):
            _ = datetime.now(UTC) - value
            return value
    raise InvalidInputError(
        "stale_after must be a duration such as 36h, 2d or 1w", repr(value), "Correct it."
    )
