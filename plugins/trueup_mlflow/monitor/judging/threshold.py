"""What a version is judged by: the largest error that is fine, and ages such as 36h, 2d, 1w."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from trueup.errors import InvalidInputError
from trueup_mlflow.write.monitor_items import FAIL_ABOVE_TAG

_MULTIPLE = re.compile(r"(\d+(?:\.\d+)?)x")


def threshold_of(
    value: float | str | None, reference_error: float | None, name: str = "fail_above"
) -> float | None:
    """Return a threshold above 0; "1.5x" is that many times the error of the reference."""
    if value is None:
        return None
    multiple = _MULTIPLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if multiple and reference_error is None:
        raise InvalidInputError(
            f"{name} must be an error where that of the reference is not known",
            repr(value),
            "Give a number.",
        )
    try:
        found = float(multiple[1]) * (reference_error or 0.0) if multiple else float(value)
    except (ValueError, TypeError, OverflowError):
        found = math.nan
    if not (math.isfinite(found) and found > 0.0):
        raise InvalidInputError(
            f"{name} must be a number above 0, or a multiple such as 1.5x",
            repr(value),
            "Correct it.",
        )
    return found


def kept_threshold(tags: Mapping[str, str]) -> float | None:
    """Return the threshold that ``init`` was given for a version with these tags, if any."""
    return threshold_of(tags.get(FAIL_ABOVE_TAG), None)


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
