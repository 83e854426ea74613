"""Keys of the levels of a column in a monitor run: written, and read back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trueup.monitoring import MSEEstimate
from trueup_mlflow.write.monitor_items import ESTIMATED, REALIZED, of_metric

MIN_ROWS = 30
"""Rows from which on a level is estimated."""

FEW_ROWS = 100
"""Rows of a level below which its mean error hangs on single rows."""

_SEGMENT = "segment"


@dataclass(frozen=True)
class Segment:
    """The newest estimate for a level of a column, and the newest error realized for it."""

    name: str  # ``<column>/<level>``
    step: int  # number of the batch that was estimated
    value: float  # the estimate
    # its 90% interval, where there is one
    low: float | None = None
    high: float | None = None
    # rows of the level in that batch; None where an earlier version logged it
    rows: int | None = None
    trusted: bool | None = None  # whether the estimate is to be trusted; None likewise
    # error of the labelled rows of the level in the batch ``realized_step``
    realized: float | None = None
    realized_step: int | None = None  # number of that batch, which may be an earlier one

    @property
    def few(self) -> bool:
        return self.rows is not None and self.rows < FEW_ROWS


def segment_metrics(segment: str, estimate: MSEEstimate) -> dict[str, float]:
    """Return the metrics of a level of a column, ``segment`` being ``<column>/<level>``."""
    key = f"{_SEGMENT}/{segment}/{of_metric(ESTIMATED, estimate.metric)}"
    values = {
        key: estimate.value,
        f"{key}_low": estimate.low,
        f"{key}_high": estimate.high,
        f"{key}_rows": float(estimate.n),
        f"{key}_trusted": float(estimate.trusted),
    }
    return {key: value for key, value in values.items() if math.isfinite(value)}


def realized_segment_metrics(metric: str, errors: Mapping[str, float]) -> dict[str, float]:
    """Return the realized errors of levels, by ``<column>/<level>``, as metrics."""
    key = of_metric(REALIZED, metric)
    return {f"{_SEGMENT}/{segment}/{key}": value for segment, value in errors.items()}


def segments_of(points: Iterable[Any], metric: str) -> tuple[Segment, ...]:
    """Return the levels that the newest points of a monitor run hold, by name.

    ``points`` have ``key``, ``value`` and ``step``: the newest point of each key.
    """
    newest = {point.key: point for point in points}
    estimated, realized = (of_metric(key, metric) for key in (ESTIMATED, REALIZED))
    found = []
    for key in sorted(newest):
        named = re.fullmatch(rf"{_SEGMENT}/(.+)/{estimated}", key, flags=re.DOTALL)
        if named is None:
            continue
        step = newest[key].step
        parts = {
            part: newest[f"{key}_{part}"].value
            for part in ("low", "high", "rows", "trusted")
            if f"{key}_{part}" in newest and newest[f"{key}_{part}"].step == step
        }
        truth = newest.get(f"{_SEGMENT}/{named[1]}/{realized}")
        found.append(
            Segment(
                named[1],
                step,
                newest[key].value,
                parts.get("low"),
                parts.get("high"),
                rows=int(parts["rows"]) if "rows" in parts else None,
                trusted=bool(parts["trusted"]) if "trusted" in parts else None,
                realized=None if truth is None else truth.value,
                realized_step=None if truth is None else truth.step,
            )
        )
    return tuple(found)
