"""One-pass summaries of predictions: fixed in size, and mergeable in any order.

A summary replaces its rows by a few weighted points that integrate the loss, for any bias term, to
about 1e-12; the points are then scored like rows. Update it with batches, merge it with those of
other files, processes or machines, and compute the evaluation when it is wanted.
"""

from __future__ import annotations

from trueup.summaries.field import FieldSummary
from trueup.summaries.kinds import (
    BrierSummary,
    LogLossSummary,
    PoissonSummary,
    SquaredErrorSummary,
    from_bytes,
    summary_of,
    summary_type,
)
from trueup.summaries.loss import LossSummary

__all__ = [
    "BrierSummary",
    "FieldSummary",
    "LogLossSummary",
    "LossSummary",
    "PoissonSummary",
    "SquaredErrorSummary",
    "from_bytes",
    "summary_of",
    "summary_type",
]
