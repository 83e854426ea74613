"""Whether an estimate may be acted on: alarms, support, and how earlier batches turned out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup.monitoring.learning import Learned
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.trust.support import OUTSIDE

ENOUGH_LABELS = 5
"""Realized batches from which on their record counts for more than the support does."""

_OUTSIDE_LIMIT = 0.3
_TOO_WIDE = 0.8  # of the log, stretched: a 90% interval from a quarter to four times the estimate


def with_trust(
    estimate: MSEEstimate, learned: Learned, alarms: tuple[str, ...] = ()
) -> MSEEstimate:
    """Return the learned estimate with the verdict whether it is to be trusted.

    Notes
    -----
    Not trusted are batches with an alarm; those outside of the reference, as long as no realized
    batch says how estimates fare; from five realized ones on, those whose learned interval says
    nothing; and between, those of which both is true. That a classifier tells the batch from the
    reference is no sign by itself: it does so for nearly every batch of another time.
    """
    doubts = [*_lasting(estimate), *_doubts(estimate, learned, alarms)]
    return replace(
        estimate,
        mse=learned.mse,
        low=learned.low,
        high=learned.high,
        trusted=not doubts,
        reasons=tuple(dict.fromkeys([*doubts, *estimate.reasons])),
    )


def _doubts(estimate: MSEEstimate, learned: Learned, alarms: tuple[str, ...]) -> list[str]:
    """Return what support, record and alarms say, as far as the number of labels lets them."""
    support, signs = _of_support(estimate), [*_of_record(learned), *alarms]
    if learned.labels >= ENOUGH_LABELS:
        return signs
    if learned.labels == 0:
        return [*support, *alarms]
    return [*support, *signs] if support and signs else [*alarms]


def _lasting(estimate: MSEEstimate) -> list[str]:
    """Return why an estimate is not to be trusted whatever earlier batches say."""
    if estimate.trusted or _is_outside(estimate):
        return []
    return [estimate.reasons[0]]


def _is_outside(estimate: MSEEstimate) -> bool:
    return bool(estimate.reasons) and estimate.reasons[0].startswith(OUTSIDE)


def _of_support(estimate: MSEEstimate) -> list[str]:
    if _is_outside(estimate):
        return [estimate.reasons[0]]
    share = estimate.diagnostics.get("outside", 0.0)
    if estimate.trusted and share > _OUTSIDE_LIMIT:
        return [f"{OUTSIDE}: {share:.0%} of the rows have no neighbours in it"]
    return []


def _of_record(learned: Learned) -> list[str]:
    spread = learned.outlook.log_sd * learned.stretch
    if spread <= _TOO_WIDE:
        return []
    return [
        f"the interval is {learned.high / learned.low:.2g}-fold, as the estimates for this stream "
        f"are off by a factor of {np.exp(spread):.2g} or so"
    ]
