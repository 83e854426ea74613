"""What a comparison run gains: metrics, tags, parameters and a table. Pure; needs no server."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from trueup import __version__
from trueup.comparison import Comparison
from trueup_mlflow.compare.seed_runs import SeedRun
from trueup_mlflow.write.items import COMPARISON_ROLE, ROLE_TAG, VERSION_TAG

TABLE_FILE = "comparison.csv"
FIGURE_FILE = "comparison.png"

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


def comparison_table(
    comparison: Comparison, arms: Mapping[str, Sequence[SeedRun]], metric: str
) -> str:
    """Return one line per run of either arm as CSV; a failed run has no value."""
    pairs = {
        "candidate": {seed for seed, _ in comparison.pairs},
        "baseline": {seed for _, seed in comparison.pairs},
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["arm", "seed", metric, "in_a_pair", "status", "run_id"])
    for arm, runs in arms.items():
        for run in runs:
            value = run.value(metric)
            shown = repr(value) if math.isfinite(value) else ""
            writer.writerow([arm, run.seed, shown, run.seed in pairs[arm], run.status, run.run_id])
    return text.getvalue()
