"""What is drawn: a common axis, strips of seeds on it, and the steps of a metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trueup_ui.read.store import History
from trueup_ui.view.numbers import plain
from trueup_ui.view.seeds import Spread

_PADDING = 0.04
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Tick:
    """A tick at so many percent of the width."""

    x: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A linear axis from ``low`` to ``high``, ``low < high``."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Axis:
        """Return the axis that holds all finite values with a margin.

        Examples
        --------
        >>> axis = Axis.over([1.0, 2.0])
        >>> axis.at(1.5)
        50.0
        """
        finite = [value for value in values if math.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        margin = _PADDING * (high - low) or 0.5 * abs(low) or 1.0
        return cls(low - margin, high + margin)

    def at(self, value: float) -> float:
        """Return where a value lies, in percent of the width, cut to the axis."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, about: int = 5) -> tuple[Tick, ...]:
        """Return about so many ticks at round numbers.

        Examples
        --------
        >>> [tick.label for tick in Axis(0.0, 1.0).ticks()]
        ['0', '0.2', '0.4', '0.6', '0.8', '1']
        """
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in _STEPS if power * factor >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return tuple(
            Tick(self.at(number * step), _label(number * step, step))
            for number in range(first, last + 1)
        )


def _label(value: float, step: float) -> str:
    """Return a multiple of a round step with no more digits than it has.

    Examples
    --------
    >>> _label(0.4600000001, 0.005), _label(200.0, 50.0), _label(-2e7, 1e7)
    ('0.46', '200', '−2e+07')
    """
    largest = max(abs(value), step)
    if not 1e-4 <= step <= largest < 1e6:
        digits = max(1, math.ceil(math.log10(largest / step) + 1.0))
        return f"{value + 0.0:.{digits}g}".replace("-", "−")
    decimals = max(0, 2 - math.floor(math.log10(step)))
    text = f"{value + 0.0:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


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


_Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Curves:
    """The steps of one metric."""

    steps: tuple[int, ...]  # every step that some seed has
    # over the seeds that have the step; the band is one standard deviation wide to each side, and
    # none where only one seed has the step
    mean: _Values
    low: _Values
    high: _Values
    traces: Mapping[str, _Values]  # seed -> value at each step, None where it has none


def curves(histories: Mapping[str, History]) -> Curves:
    """Return the curves over seeds from the steps of each."""
    finite = {
        seed: {step: value for step, value in history.items() if math.isfinite(value)}
        for seed, history in histories.items()
    }
    steps = tuple(sorted({step for history in finite.values() for step in history}))
    traces = {seed: tuple(one.get(step) for step in steps) for seed, one in finite.items() if one}
    columns = [
        [v for v in column if v is not None] for column in zip(*traces.values(), strict=True)
    ]
    mean = [float(np.mean(column)) for column in columns]
    sd = [float(np.std(column, ddof=1)) if len(column) > 1 else None for column in columns]
    pairs = list(zip(mean, sd, strict=True))
    return Curves(
        steps,
        tuple(mean),
        tuple(None if s is None else m - s for m, s in pairs),
        tuple(None if s is None else m + s for m, s in pairs),
        traces,
    )
