"""A common axis: where a value lies, in percent, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

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
