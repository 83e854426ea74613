"""What a batch learns from the records of earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.monitoring import MSEEstimate
from trueup.monitoring.learning import Earlier, Learned, Outlook, Raw, learn
from trueup_mlflow.write.monitor_items import BatchRecord


def raw_of(estimate: MSEEstimate, reference_error: float | None) -> Raw:
    """Return the estimate as it is before learning; without a reference error it never moved."""
    reference = estimate.value if reference_error is None else reference_error
    return Raw(estimate.value, estimate.low, estimate.high, reference)


def learned_for(
    raw: Raw,
    records: Sequence[BatchRecord],
    timestamp: int,
    scale_prior: Sequence[float],
    metric: str,
) -> Learned:
    """Return the estimate of a batch of a time, given the records as they are now.

    A batch learns from batches of earlier times only, also where it is estimated after later ones,
    and of its own metric.
    """
    before = [
        record
        for record in records
        if record.timestamp < timestamp and record.logged and record.metric == metric
    ]
    return learn(raw, [_earlier(record) for record in before], scale_prior)


def _earlier(record: BatchRecord) -> Earlier:
    if not record.raw:  # kept by a version that did not learn
        low, high = float(record.estimate["low"]), float(record.estimate["high"])
        return Earlier(Raw(record.value, low, high, reference=record.value), record.realized)
    outlook = Outlook(**record.outlook) if record.outlook else None
    return Earlier(Raw(**record.raw), record.realized, outlook)
