"""What runs gain from decisions, of pipelines and of calibrators. Pure; needs no server."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trueup import __version__
from trueup.comparison import Comparison
from trueup_mlflow.compare.seed_runs import SeedRuns
from trueup_mlflow.write.items import COMPARISON_ROLE, ROLE_TAG, VERSION_TAG, LogItems

if TYPE_CHECKING:
    from trueup.calibrators import CalibratorTable, GuardDecision

COMPARISON_TABLE = "comparison.csv"
COMPARISON_FIGURE = "comparison.png"

_METRICS = {
    "difference": "difference",
    "difference_low": "low",
    "difference_high": "high",
    "p_better": "p_better",
    "p_better_low": "p_better_low",
    "p_better_high": "p_better_high",
    "n_pairs": "n_pairs",
}


def comparison_metrics(comparison: Comparison) -> dict[str, float]:
    """Return the finite numbers of a comparison by metric key."""
    values = {key: float(getattr(comparison, name)) for key, name in _METRICS.items()}
    return {key: value for key, value in values.items() if math.isfinite(value)}


def comparison_tags(
    comparison: Comparison, note: str, fingerprints: str, names: tuple[str, str]
) -> dict[str, str]:
    """Return the tags of a comparison run; its description is the decision in words.

    Its name says who was compared with whom, and how that ended.
    """
    failed = (*comparison.failed_candidate, *comparison.failed_baseline)
    return {
        ROLE_TAG: COMPARISON_ROLE,
        VERSION_TAG: __version__,
        "trueup.verdict": comparison.verdict,
        "trueup.estimand": comparison.estimand,
        "trueup.fingerprint_check": fingerprints,
        "trueup.failed_seeds": ", ".join(str(seed) for seed in failed),
        "mlflow.note.content": " ".join(filter(None, (comparison.sentence(*names), note))),
        "mlflow.runName": _run_name(comparison, names),
    }


def _run_name(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return who was compared with whom, and how that ended."""
    candidate, baseline = names
    if comparison.verdict == "candidate":
        return f"{candidate} beats {baseline}"
    if comparison.verdict == "baseline":
        return f"{baseline} beats {candidate}"
    return f"{candidate} or {baseline}: inconclusive"


def comparison_table(comparison: Comparison, arms: Mapping[str, SeedRuns], metric: str) -> str:
    """Return one line per run of either arm as CSV; a failed run has no value."""
    pairs = {
        "candidate": {seed for seed, _ in comparison.pairs},
        "baseline": {seed for _, seed in comparison.pairs},
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", "seed", metric, "in_a_pair", "status", "run_id"])
    for arm, runs in arms.items():
        for seed, run in runs.items():
            value = run.value(metric)
            shown = repr(value) if math.isfinite(value) else ""
            writer.writerow([arm, seed, shown, seed in pairs[arm], run.status, run.run_id])
    return text.getvalue()


CALIBRATOR_TABLE = "calibrators.md"
CALIBRATOR_FIGURE = "calibrators.png"
_OF_CALIBRATORS = (
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
    metrics = {
        calibrator_key(score.name, metric, prefix): float(getattr(score, metric))
        for score in table.scores
        for metric in _OF_CALIBRATORS
    }
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
