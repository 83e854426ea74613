"""Page 4: the monitored versions in one table, and the time line of one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from trueup_mlflow.monitor.judging.verdict import Coverage, State, state_of
from trueup_mlflow.write.monitor_items import BatchRecord
from trueup_ui.read.monitors import MonitoredVersion
from trueup_ui.view.charts import Axis, Tick

_MOST_TICKS = 6


@dataclass(frozen=True)
class Point:
    """A batch on the time line; everything in percent, heights from the top."""

    x: float
    y: float
    low: float
    high: float
    realized: float | None
    trusted: bool
    label: str


@dataclass(frozen=True)
class TimeTick:
    """A time at so many percent of the width, in milliseconds since 1970."""

    x: float
    timestamp: int


@dataclass(frozen=True)
class TimeLine:
    """Estimates with their intervals, and realized errors, over time, in a square of 100.

    ``n_cut`` intervals, which are not to be trusted, go beyond it; ``threshold`` is the height of
    what is too high, None where no threshold is kept.
    """

    points: tuple[Point, ...]
    band: str
    line: str
    ticks: tuple[Tick, ...]
    times: tuple[TimeTick, ...]
    n_cut: int
    threshold: float | None = None


@dataclass(frozen=True)
class VersionRow:
    """One version in the table, its verdict, and the ``reasons`` of its latest batch."""

    version: MonitoredVersion
    state: State
    reasons: tuple[str, ...]
    last: BatchRecord | None
    last_realized: BatchRecord | None
    coverage: Coverage
    age: str
    line: TimeLine | None


def version_row(version: MonitoredVersion, now: datetime) -> VersionRow:
    """Return what the table says of a version."""
    records = version.records
    last = records[-1] if records else None
    realized = [record for record in records if realized_of(record) is not None]
    return VersionRow(
        version,
        state_of(records, version.fail_above),
        () if last is None else reasons_of(last),
        last,
        realized[-1] if realized else None,
        Coverage.of(records),
        "" if last is None else age(now, last.timestamp),
        time_line(records, version.fail_above),
    )


def reasons_of(record: BatchRecord) -> tuple[str, ...]:
    """Return the reasons of an estimate; a tag that somebody changed may hold anything."""
    found = record.estimate.get("reasons")
    return tuple(str(text) for text in found) if isinstance(found, list | tuple) else ()


def realized_of(record: BatchRecord) -> float | None:
    """Return the realized error, None where there is no finite one."""
    value = record.realized
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def age(now: datetime, timestamp: int) -> str:
    """Return how long ago a time was, in its largest unit.

    Examples
    --------
    >>> age(datetime(2026, 1, 3, tzinfo=UTC), 1767225600000)
    '2 days'
    """
    seconds = (now - datetime.fromtimestamp(timestamp / 1000.0, UTC)).total_seconds()
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            n = int(seconds // length)
            return f"{n} {unit}{'s' * (n > 1)}"
    return "now"


def time_line(records: Sequence[BatchRecord], fail_above: float | None = None) -> TimeLine | None:
    """Return the series of a version on axes from zero; None without a finite estimate."""
    records = [record for record in records if math.isfinite(record.value)]
    if not records:
        return None
    times = Axis.over(record.timestamp for record in records)
    values = Axis(0.0, 1.06 * max(*_heights(records), fail_above or 0.0))
    points = tuple(_point(record, times, values) for record in records)
    around = [(p.x, p.high) for p in points] + [(p.x, p.low) for p in reversed(points)]
    return TimeLine(
        points,
        " ".join(f"{x},{y}" for x, y in around),
        " ".join(f"{p.x},{p.y}" for p in points),
        tuple(Tick(round(100.0 - tick.x, 2), tick.label) for tick in values.ticks(4)),
        _time_ticks(records, times),
        sum(values.high < record.number("high") < math.inf for record in records),
        None if fail_above is None else round(100.0 - values.at(fail_above), 2),
    )


def _heights(records: Sequence[BatchRecord]) -> Iterator[float]:
    """Yield what the axis must hold: all but the intervals that are not to be trusted."""
    yield 1e-300  # an axis has a length although every error is zero
    for record in records:
        found = (
            record.number("high") if record.estimate["trusted"] else math.nan,
            record.value,
            realized_of(record),
        )
        yield from (value for value in found if value is not None and math.isfinite(value))


def _point(record: BatchRecord, times: Axis, values: Axis) -> Point:
    def height(error: float) -> float:
        return round(100.0 - values.at(error), 2)

    value, realized = record.value, realized_of(record)
    ends = (record.number("low"), record.number("high"))
    low, high = (end if math.isfinite(end) else value for end in ends)
    label = f"{value:.4g} [{low:.4g}, {high:.4g}]"
    return Point(
        times.at(record.timestamp),
        height(value),
        height(low),
        height(high),
        None if realized is None else height(realized),
        bool(record.estimate["trusted"]),
        label if realized is None else f"{label}, realized {realized:.4g}",
    )


def _time_ticks(records: Sequence[BatchRecord], times: Axis) -> tuple[TimeTick, ...]:
    """Return the times of batches at equal steps, the last among them."""
    step = -(-len(records) // _MOST_TICKS)
    stamps = [record.timestamp for record in records[::-1][::step]][::-1]
    return tuple(TimeTick(times.at(stamp), stamp) for stamp in stamps)
