"""What a run gains from a comparison of calibrators: metrics and tags. Pure; needs no server."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trueup import __version__
from trueup.calibrators import CalibratorScore, CalibratorTable, GuardDecision
from trueup_mlflow.write.items import VERSION_TAG, LogItems

TABLE_NAME = "calibrators.md"
FIGURE_NAME = "calibrators.png"
_METRICS = (
    "log_loss",
    "log_loss_change",
    "brier_score",
    "field_ece",
    "field_ece_floor",
    "field_rce",
    "auc",
)


def calibrator_key(name: str, metric: str, prefix: str = "") -> str:
    """Return the key of one number of one calibrator."""
    return f"{prefix}calibrator_{name}_{metric}"


def guard_tag(name: str) -> str:
    """Return the tag that says what the guard decides about a calibrator."""
    return f"trueup.guard.{name}"


def calibrator_items(table: CalibratorTable, prefix: str = "") -> LogItems:
    """Return the metrics and tags of a comparison of calibrators."""
    metrics = {key: value for score in table.scores for key, value in _values(score, prefix)}
    guarded = [score for score in table.scores if score.kept is not None]
    return LogItems(
        f"{prefix}calibrators",
        {key: value for key, value in metrics.items() if math.isfinite(value)},
        {
            VERSION_TAG: __version__,
            "trueup.calibrators.field": table.field,
            **{guard_tag(score.name): "kept" if score.kept else "not kept" for score in guarded},
        },
    )


def calibrator_text(table: CalibratorTable, by_time: Mapping[str, GuardDecision]) -> str:
    """Return the table, then the origins of each calibrator that was judged by time."""
    parts = [table.to_markdown()]
    for name, decision in by_time.items():
        parts.append(f"## {name}\n\n{decision.reason}\n\n{decision.to_markdown()}")
    return "\n".join(parts)


def _values(score: CalibratorScore, prefix: str) -> list[tuple[str, float]]:
    return [
        (calibrator_key(score.name, metric, prefix), float(getattr(score, metric)))
        for metric in _METRICS
    ]
