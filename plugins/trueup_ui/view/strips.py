"""Strips of seeds: a dot for each run on a common axis, spread upwards so that dots stay apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueup_ui.view.axis import Axis
from trueup_ui.view.numbers import plain
from trueup_ui.view.seeds import Spread

MOST_DOTS = 120
"""A strip of more runs shows so many of them, at equal steps of rank."""


@dataclass(frozen=True)
class Dot:
    """A run at ``x`` percent of the width and ``y`` percent of the height."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Strip:
    """Dots, the mean, and the range of one standard deviation, in percent of the width."""

    dots: tuple[Dot, ...]
    mean: float
    low: float
    high: float
    n_hidden: int


def strip(spread: Spread | None, axis: Axis, top: float, bottom: float) -> Strip | None:
    """Return the strip of a metric between two heights in percent; None without values."""
    if spread is None:
        return None
    ordered = _thinned(sorted(spread.values))
    dots = tuple(
        Dot(axis.at(value), round(top + (bottom - top) * _fraction(rank + 1), 1), plain(value, 6))
        for rank, value in enumerate(ordered)
    )
    sd = spread.sd or 0.0
    low, high = axis.at(spread.mean - sd), axis.at(spread.mean + sd)
    return Strip(dots, axis.at(spread.mean), low, high, len(spread.values) - len(ordered))


def _thinned(ordered: Sequence[float]) -> list[float]:
    n = len(ordered)
    if n <= MOST_DOTS:
        return list(ordered)
    return [ordered[round(k * (n - 1) / (MOST_DOTS - 1))] for k in range(MOST_DOTS)]


def _fraction(rank: int) -> float:
    """Return van der Corput's sequence: neighbours in rank lie far apart in height.

    Examples
    --------
    >>> [_fraction(rank) for rank in range(1, 5)]
    [0.5, 0.25, 0.75, 0.125]
    """
    value, base = 0.0, 0.5
    while rank:
        rank, digit = divmod(rank, 2)
        value += digit * base
        base /= 2.0
    return value
