"""How often the intervals of a monitored version hold the error that was realized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueup_mlflow.write.monitor_items import BatchRecord


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

    @classmethod
    def of(cls, records: Sequence[BatchRecord]) -> Coverage:
        """Count over the batches whose labels have arrived."""
        realized = [record for record in records if record.covered is not None]
        inside = sum(bool(record.covered) for record in realized)
        if not realized:
            return cls(0, 0, 0.0, 1.0)
        from scipy.stats import binomtest  # takes longer to import than all else that gates need

        interval = binomtest(inside, len(realized)).proportion_ci(0.95)
        return cls(inside, len(realized), float(interval.low), float(interval.high))
