"""One run of MLflow, as comparisons and pages take it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from mlflow.entities import Run

from trueup_mlflow.write.items import ROLE_TAG, SEED_TAG, fingerprint_tag
from trueup_mlflow.write.late_twins import late_twins

PARENT_TAG = "mlflow.parentRunId"
SEED_NAMES = ("seed", SEED_TAG)
"""Parameters and tags that hold the seed of a run, the first one found counts."""
_DERIVED = ("calibrated_", "bias_term_", "bias_cost_")


@dataclass(frozen=True)
class StoredRun:
    """A run of a store; times are milliseconds since 1970, metrics their last values."""

    run_id: str
    experiment_id: str
    name: str
    status: str
    start: int
    end: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    # keys that are left out of the metrics, since they are of another step than their metric
    late: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> StoredRun:
        info, data, late = run.info, run.data, late_twins(run)
        return cls(
            str(info.run_id),
            str(info.experiment_id),
            str(info.run_name or info.run_id),
            str(info.status),
            int(info.start_time or 0),
            int(info.end_time or 0),
            data.params,
            data.tags,
            {key: value for key, value in data.metrics.items() if key not in late},
            late,
        )

    @property
    def parent(self) -> str | None:
        return self.tags.get(PARENT_TAG)

    @property
    def role(self) -> str | None:
        return self.tags.get(ROLE_TAG)

    @property
    def seed(self) -> int | str | None:
        """The training seed, a whole number where the text is one."""
        for name in SEED_NAMES:
            text = self.params.get(name, self.tags.get(name))
            if text is not None:
                return seed_of(text)
        return None

    def value(self, metric: str) -> float:
        """Return the metric of a finished run, NaN where it failed or lacks the metric."""
        return self.metrics.get(metric, math.nan) if self.status == "FINISHED" else math.nan

    def fingerprint(self, metric: str) -> str | None:
        """Return the fingerprint that covers the metric, None where trueup did not log it."""
        for prefix in ("", *_DERIVED):
            tag = fingerprint_tag(metric.removeprefix(prefix))
            if metric.startswith(prefix) and tag in self.tags:
                return self.tags[tag]
        return None


def seed_of(text: str) -> int | str:
    """Return a seed, as a whole number where the text is one."""
    return int(text) if text.lstrip("-").isdecimal() else text
