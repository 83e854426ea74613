"""Verdict over the batches of a monitored version, and how often its intervals hold the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trueup.monitoring.metrics import metric_of
from trueup_mlflow.write.monitor_items import BatchRecord

Verdict = Literal["fine", "watch", "act"]
Above = Literal["", "estimate", "interval", "realized"]
"""Which number is above a threshold: the newest estimate, its whole interval, or the error."""

_RECENT = 3


@dataclass(frozen=True)
class State:
    """Verdict over the batches of a version, and why."""

    verdict: Verdict
    why: str

    @property
    def sentence(self) -> str:
        return f"{self.verdict}: {self.why}"


def state_of(records: Sequence[BatchRecord], fail_above: float | None = None) -> State:
    """Return how a version stands after its batches, which are in the order of time.

    "act" is for an error that is known to be too high: the newest realized one or the low end of
    the newest interval above the threshold, or realized errors above their interval in two of the
    last three batches. "watch" is for what may be wrong.
    """
    if not records:
        return State("watch", "no batch yet")
    newest, above = records[-1], above_threshold(records, fail_above)
    realized = realized_of(records)
    act, training = _error_too_high(records, above, fail_above), _far_above_reference(realized)
    if act:
        return State("act", "; ".join(filter(None, (act, training))))
    if training:
        return State("watch", training)
    if not newest.usable:
        return State("watch", f"the estimate of {newest.day} is not to be trusted")
    if above == "estimate":
        return State("watch", f"the estimate of {newest.day} is above {short(fail_above)}")
    if realized and realized[-1].side > 0:
        return State("watch", f"the realized error of {realized[-1].day} was above its interval")
    held = f", {len(realized)} of {len(records)} batches with labels"
    return State("fine", f"{short(newest.value)} estimated on {newest.day}{held}")


def realized_of(records: Sequence[BatchRecord]) -> list[BatchRecord]:
    """Return the batches whose labels have arrived."""
    return [record for record in records if record.covered is not None]


def above_threshold(records: Sequence[BatchRecord], fail_above: float | None) -> Above:
    """Return which number lies above a threshold, the surest one; "" for none."""
    if fail_above is None:
        return ""
    if any((record.realized or 0.0) > fail_above for record in realized_of(records)[-1:]):
        return "realized"
    if records[-1].number("low") > fail_above:
        return "interval"
    return "estimate" if records[-1].value > fail_above else ""


def _error_too_high(records: Sequence[BatchRecord], over: Above, fail_above: float | None) -> str:
    """Return which error is known to be too high, or nothing."""
    realized = realized_of(records)
    if over == "realized":
        what = f"the realized error of {realized[-1].day}, {short(realized[-1].realized)}"
        return f"{what}, is above {short(fail_above)}"
    if over == "interval":
        return f"the interval of {records[-1].day} lies above {short(fail_above)}"
    above = [record.day for record in realized[-_RECENT:] if record.side > 0]
    if len(above) >= _RECENT - 1:
        return f"realized errors were above their 90% intervals on {', '.join(above)}"
    return ""


def _far_above_reference(realized: Sequence[BatchRecord]) -> str:
    """Say that all realized errors were far above that of the reference from the first one on."""
    factor, word = (2.0, "twice") if len(realized) >= _RECENT else (5.0, "five times")
    found = [record.raw.get("reference") for record in realized]
    references = [one if isinstance(one, (int, float)) else math.inf for one in found]
    pairs = zip(realized, references, strict=True)
    if not realized or any((one.realized or 0.0) <= factor * error for one, error in pairs):
        return ""
    what = f"every realized error is more than {word} that of the reference"
    return f"{what}, {short(references[-1])}: were its rows training rows?"


def short(value: Any) -> str:
    """Return a number with four digits or so, and anything else as it is."""
    if value is None:
        return "none"
    if not isinstance(value, (int, float)):
        return str(value)
    return format(value, ",.0f" if 1e3 <= abs(value) < 1e7 else ".4g")


@dataclass(frozen=True)
class Realized:
    """The realized error of a batch, and whether its 90% interval held it (None: it has none)."""

    day: str
    metric: str
    value: float
    covered: bool | None

    def __str__(self) -> str:
        words = {True: ", inside its interval", False: ", outside its interval", None: ""}
        error = f"{short(self.value)} {metric_of(self.metric).words}"
        return f"{self.day} realized {error}{words[self.covered]}"


@dataclass(frozen=True)
class Coverage:
    """How many realized batches lie in their 90% interval, and what became of a file of labels.

    Attributes
    ----------
    inside, n : int
        Batches inside, and batches with labels.
    low, high : float
        95% Clopper-Pearson interval of the coverage, as if batches were independent. They share one
        reference, so the truth is less certain than that.
    matched, unknown, missing : int
        Rows of the file that belong to a batch, that belong to none, and that had no label.
    corrected : int
        Labels of the file that replaced another value.
    waiting : int
        Batches that have too few labels yet.
    state : str
        How the version stands now: verdict and why.
    realized : tuple of Realized
        The batches that the file has labels of, where enough of these are there.
    """

    inside: int
    n: int
    low: float
    high: float
    matched: int = 0
    unknown: int = 0
    missing: int = 0
    waiting: int = 0
    state: str = ""
    corrected: int = 0
    realized: tuple[Realized, ...] = ()

    @classmethod
    def of(cls, records: Sequence[BatchRecord]) -> Coverage:
        """Count over the batches whose labels have arrived."""
        realized = realized_of(records)
        inside = sum(bool(record.covered) for record in realized)
        if not realized:
            return cls(0, 0, 0.0, 1.0)
        from scipy.stats import binomtest  # takes longer to import than all else that gates need

        interval = binomtest(inside, len(realized)).proportion_ci(0.95)
        return cls(inside, len(realized), float(interval.low), float(interval.high))
