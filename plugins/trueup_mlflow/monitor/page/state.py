"""How a monitored version stands, in one sentence: fine, watch or act."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trueup_mlflow.write.monitor_items import BatchRecord

Verdict = Literal["fine", "watch", "act"]

_RECENT = 3


@dataclass(frozen=True)
class State:
    """Verdict over the batches of a version, and why."""

    verdict: Verdict
    why: str

    @property
    def sentence(self) -> str:
        """The verdict with its reason."""
        return f"{self.verdict}: {self.why}"


def state_of(records: Sequence[BatchRecord], fail_above: float | None = None) -> State:
    """Return how a version stands after its batches, which are in the order of time.

    "act" is for an error that is known to be too high: the newest realized one or the low end of
    the newest interval above the threshold, or realized errors above their interval in two of the
    last three batches. "watch" is for what may be wrong.
    """
    if not records:
        return State("watch", "no batch yet")
    newest = records[-1]
    value = newest.value
    realized = [record for record in records if record.covered is not None]
    above = [record for record in realized[-_RECENT:] if record.side > 0]
    if fail_above is not None and realized and (realized[-1].realized or 0.0) > fail_above:
        what = f"the realized error of {realized[-1].day}, {realized[-1].realized:.4g}"
        return State("act", f"{what}, is above {fail_above:g}")
    if fail_above is not None and newest.number("low") > fail_above:
        return State("act", f"the interval of {newest.day} lies above {fail_above:g}")
    if len(above) >= _RECENT - 1:
        days = ", ".join(record.day for record in above)
        return State("act", f"realized errors were above their 90% intervals on {days}")
    if _far_above_reference(realized):
        reference = f"{realized[-1].raw['reference']:.4g}"
        what = f"every realized error is more than twice that of the reference, {reference}"
        return State("watch", f"{what}: were its rows training rows?")
    if newest.estimate["trusted"] is not True or math.isnan(value):
        return State("watch", f"the estimate of {newest.day} is not to be trusted")
    if fail_above is not None and value > fail_above:
        return State("watch", f"the estimate of {newest.day} is above {fail_above:g}")
    if realized and realized[-1] in above:
        return State("watch", f"the realized error of {realized[-1].day} was above its interval")
    held = f", {len(realized)} of {len(records)} batches with labels"
    return State("fine", f"{value:.4g} estimated on {newest.day}{held}")


def _far_above_reference(realized: Sequence[BatchRecord]) -> bool:
    """Say whether the first realized errors were far above that of the reference, and all since."""
    if len(realized) < _RECENT:
        return False
    references = [record.raw.get("reference", math.inf) for record in realized]
    return all(
        (record.realized or 0.0) > 2.0 * reference
        for record, reference in zip(realized, references, strict=True)
    )
