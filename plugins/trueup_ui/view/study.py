"""Page 3: the race of the configurations of a study, and what their parameters do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueup_ui.read.studies import Configuration, Study
from trueup_ui.view.charts import Axis, Tick
from trueup_ui.view.numbers import decimals_of, fixed

MOST_ROWS = 300
MOST_PARAMETERS = 12
_LOGARITHMIC_FROM = 50.0
"""Positive parameters whose largest value is so many times the smallest get a logarithmic axis."""


@dataclass(frozen=True)
class RaceLine:
    """One configuration in the race table; places in percent of the width."""

    configuration: Configuration
    value: str
    seeds_share: float
    x: float
    low: float
    high: float
    state: str


@dataclass(frozen=True)
class Mark:
    """A configuration in the panel of a parameter, in percent from the left and the top."""

    x: float
    y: float
    low: float
    high: float
    state: str
    label: str


@dataclass(frozen=True)
class Panel:
    """One parameter against the value."""

    name: str
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    logarithmic: bool


@dataclass(frozen=True)
class StudyPage:
    """Everything that the page shows."""

    study: Study
    lines: tuple[RaceLine, ...]
    n_hidden: int
    ticks: tuple[Tick, ...]
    panels: tuple[Panel, ...]
    n_panels_hidden: int
    heights: tuple[Tick, ...]
    n_eliminated: int
    confirmed: str
    optimistic: str


def study_page(study: Study) -> StudyPage:
    """Return the page of a study."""
    ordered = _ordered(study)
    axis = _value_axis(ordered)
    decimals = max((decimals_of(one.standard_error) or 0 for one in ordered), default=0) or None
    most = max((one.n_seeds for one in ordered), default=1)
    panels = _panels(ordered, study, axis)
    confirmed = [fixed(value, decimals) for value in study.confirmed or ()]
    return StudyPage(
        study,
        tuple(_line(one, study, axis, decimals, most) for one in ordered[:MOST_ROWS]),
        max(0, len(ordered) - MOST_ROWS),
        axis.ticks(4) if ordered else (),
        tuple(panels[:MOST_PARAMETERS]),
        max(0, len(panels) - MOST_PARAMETERS),
        tuple(Tick(round(100.0 - tick.x, 2), tick.label) for tick in axis.ticks(4)),
        sum(one.eliminated_by is not None for one in ordered),
        "{} [{}, {}]".format(*confirmed) if confirmed else "",
        fixed(study.optimistic, decimals),
    )


def _ordered(study: Study) -> list[Configuration]:
    """Return the selected one, the survivors, then the eliminated ones, each in their order."""
    return sorted(
        study.configurations,
        key=lambda one: (one.number != study.selected, one.eliminated_by is not None),
    )


def _value_axis(ordered: Sequence[Configuration]) -> Axis:
    ends = [one.mean + sign * (one.standard_error or 0.0) for one in ordered for sign in (-1, 1)]
    return Axis.over(ends)


def _state(one: Configuration, study: Study) -> str:
    if one.number == study.selected:
        return "selected"
    return "finished" if one.eliminated_by is None else "eliminated"


def _line(
    one: Configuration, study: Study, axis: Axis, decimals: int | None, most: int
) -> RaceLine:
    error = one.standard_error
    text = fixed(one.mean, decimals)
    return RaceLine(
        one,
        text if error is None else f"{text} ± {fixed(error, decimals)}",
        round(100.0 * one.n_seeds / most, 1),
        axis.at(one.mean),
        axis.at(one.mean - (error or 0.0)),
        axis.at(one.mean + (error or 0.0)),
        _state(one, study),
    )


def _panels(ordered: Sequence[Configuration], study: Study, axis: Axis) -> list[Panel]:
    names = dict.fromkeys(name for one in ordered for name in one.params)
    varying = [name for name in names if len({str(one.params.get(name)) for one in ordered}) > 1]
    return [_panel(name, ordered, study, axis) for name in varying]


def _panel(name: str, ordered: Sequence[Configuration], study: Study, values: Axis) -> Panel:
    having = [one for one in ordered if name in one.params]
    places, ticks, logarithmic = _places([one.params[name] for one in having])
    marks = []
    for one, x in zip(having, places, strict=True):
        error = one.standard_error or 0.0
        y, low, high = (
            round(100.0 - values.at(one.mean + shift), 2) for shift in (0.0, -error, error)
        )
        label = f"trial {one.number}: {one.params[name]}"
        marks.append(Mark(x, y, low, high, _state(one, study), label))
    return Panel(name, tuple(reversed(marks)), ticks, logarithmic)  # the selected one on top


def _places(values: Sequence[object]) -> tuple[list[float], tuple[Tick, ...], bool]:
    """Return where values lie on the axis of their parameter, its ticks, and whether it is log."""
    numbers = [_number(value) for value in values]
    if any(number is None for number in numbers):
        return _category_places([str(value) for value in values])
    found = [number for number in numbers if number is not None]
    if min(found) > 0.0 and max(found) / min(found) >= _LOGARITHMIC_FROM:
        axis = Axis.over(math.log10(number) for number in found)
        powers = range(math.ceil(axis.low), math.floor(axis.high) + 1)
        ticks = tuple(Tick(axis.at(power), f"{10.0**power:g}") for power in powers)
        return [axis.at(math.log10(number)) for number in found], ticks, True
    axis = Axis.over(found)
    return [axis.at(number) for number in found], axis.ticks(3), False


def _category_places(values: Sequence[str]) -> tuple[list[float], tuple[Tick, ...], bool]:
    names = sorted(set(values))
    at: Mapping[str, float] = {
        name: round(100.0 * (index + 0.5) / len(names), 2) for index, name in enumerate(names)
    }
    ticks = tuple(Tick(at[name], name[:14]) for name in names[:6])
    return [at[value] for value in values], ticks, False


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
