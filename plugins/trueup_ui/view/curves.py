"""Steps of the seeds of a pipeline: each seed's trace, their mean, and a band of one sd."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup_ui.read.histories import History

_Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Curves:
    """The steps of one metric.

    Attributes
    ----------
    steps : tuple of int
        Every step that some seed has.
    mean, low, high : tuple of float or None
        Over the seeds that have the step; the band is one standard deviation wide to each side, and
        None where only one seed has the step.
    traces : mapping of str to tuple
        Seed -> value at each step, None where it has none.
    """

    steps: tuple[int, ...]
    mean: _Values
    low: _Values
    high: _Values
    traces: Mapping[str, _Values]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        traces = {seed: list(values) for seed, values in self.traces.items()}
        return {
            "steps": list(self.steps),
            "mean": list(self.mean),
            "low": list(self.low),
            "high": list(self.high),
            "traces": traces,
        }


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
