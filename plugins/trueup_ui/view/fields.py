"""Page 5: the levels of a field, sorted, searched and cut into pages, beside the noise floor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.items import field_key
from trueup_ui.read.levels import Levels
from trueup_ui.view.charts import Axis, Tick

LevelOrder = Literal["surprise", "size", "rows", "too high", "too low", "level"]
LEVEL_ORDERS: tuple[LevelOrder, ...] = get_args(LevelOrder)
PAGE_ROWS = 100
FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class AskedLevels:
    """Which levels the reader wants to see; ``page`` counts from 1."""

    field: str = ""
    order: LevelOrder = "surprise"
    search: str = ""
    page: int = 1


@dataclass(frozen=True)
class FieldSummary:
    """Calibration error over the levels of a field, and what a perfect model would score."""

    name: str
    ece: float | None
    floor: float | None
    rce: float | None
    n_levels: int
    n_off: int


@dataclass(frozen=True)
class LevelRow:
    """One level; ``x``, ``x_low`` and ``x_high`` in percent of the width of the axis."""

    level: str
    n: int
    observed: float
    predicted: float
    difference: float
    q_value: float
    offset: float
    is_off: bool
    x: float
    x_low: float
    x_high: float


@dataclass(frozen=True)
class FieldsPage:
    """Everything that the page shows."""

    asked: AskedLevels
    fields: tuple[FieldSummary, ...]
    rows: tuple[LevelRow, ...]
    n_found: int
    n_pages: int
    zero: float
    ticks: tuple[Tick, ...]

    @property
    def first_row(self) -> int:
        """Number of the first level on this page, from 1."""
        return (self.asked.page - 1) * PAGE_ROWS + 1


def runs_with_fields(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the runs that logged fields, the latest first."""
    start = field_key("ece", "")
    return [run for run in reversed(runs) if any(start in key for key in run.metrics)]


def fields_page(
    tables: Mapping[str, Levels], metrics: Mapping[str, float], asked: AskedLevels
) -> FieldsPage:
    """Return the page of the levels of one run."""
    summaries = tuple(_summary(name, levels, metrics) for name, levels in tables.items())
    name = asked.field if asked.field in tables else next(iter(tables))
    levels = tables[name]
    found = np.flatnonzero(np.char.find(np.char.lower(levels.level), asked.search.lower()) >= 0)
    ordered = found[_order(levels, found, asked.order)]
    n_pages = max(1, math.ceil(len(ordered) / PAGE_ROWS))
    page = min(max(asked.page, 1), n_pages)
    shown = ordered[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    axis = _axis(levels, shown)
    return FieldsPage(
        replace(asked, field=name, page=page),
        summaries,
        tuple(_row(levels, int(index), axis) for index in shown),
        len(ordered),
        n_pages,
        axis.at(0.0),
        axis.ticks(4),
    )


def _summary(name: str, levels: Levels, metrics: Mapping[str, float]) -> FieldSummary:
    values = {
        kind: next((v for key, v in metrics.items() if key.endswith(field_key(kind, name))), None)
        for kind in ("ece", "floor", "rce")
    }
    n_off = int((levels.numbers["q_value"] <= FALSE_DISCOVERY_RATE).sum())
    return FieldSummary(name, n_levels=len(levels.level), n_off=n_off, **values)


def _order(levels: Levels, found: NDArray[np.intp], order: LevelOrder) -> NDArray[np.intp]:
    """Return positions in ``found``; ties keep the order of surprise."""
    if order == "surprise":
        return np.arange(len(found))
    if order == "level":
        return np.argsort(levels.level[found], kind="stable")
    numbers = levels.numbers
    keys = {
        "size": -np.abs(numbers["difference"]),
        "rows": -numbers["n"],
        "too high": numbers["difference"],
        "too low": -numbers["difference"],
    }
    return np.argsort(keys[order][found], kind="stable")


def _axis(levels: Levels, shown: NDArray[np.intp]) -> Axis:
    """Return an axis for differences that holds zero, and intervals where they are not huge."""
    difference = np.abs(levels.numbers["difference"][shown])
    ends = np.maximum(np.abs(levels.numbers["low"][shown]), np.abs(levels.numbers["high"][shown]))
    if not len(shown):
        return Axis(-1.0, 1.0)
    reach = max(float(difference.max()), float(np.quantile(ends, 0.8)), 1e-9)
    return Axis(-1.05 * reach, 1.05 * reach)


def _row(levels: Levels, index: int, axis: Axis) -> LevelRow:
    value = {name: float(column[index]) for name, column in levels.numbers.items()}
    return LevelRow(
        str(levels.level[index]),
        int(value["n"]),
        value["observed"],
        value["predicted"],
        value["difference"],
        value["q_value"],
        value["offset"],
        value["q_value"] <= FALSE_DISCOVERY_RATE,
        axis.at(value["difference"]),
        axis.at(value["low"]),
        axis.at(value["high"]),
    )
