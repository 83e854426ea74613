"""What a comparison run gains: metrics, tags, parameters and a table. Pure; needs no server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trueup import __version__
from trueup.comparison import Comparison
from trueup_mlflow.seed_runs import COMPARISON_ROLE, ROLE_TAG, SeedRun

TABLE_FILE = "trueup/comparison.json"
FIGURE_FILE = "trueup/comparison.png"

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


def comparison_tags(comparison: Comparison, note: str, fingerprints: str) -> dict[str, str]:
    """Return the tags of a comparison run; its description is the decision in words."""
    failed = (*comparison.failed_candidate, *comparison.failed_baseline)
    return {
        ROLE_TAG: COMPARISON_ROLE,
        "trueup.version": __version__,
        "trueup.verdict": comparison.verdict,
        "trueup.estimand": comparison.estimand,
        "trueup.fingerprint_check": fingerprints,
        "trueup.failed_seeds": ", ".join(str(seed) for seed in failed),
        "mlflow.note.content": " ".join(filter(None, (str(comparison), note))),
    }


def comparison_table(
    comparison: Comparison, arms: Mapping[str, Sequence[SeedRun]], metric: str
) -> dict[str, list[Any]]:
    """Return one row per run of either arm as columns."""
    paired = {
        "candidate": {seed for seed, _ in comparison.pairs},
        "baseline": {seed for _, seed in comparison.pairs},
    }
    rows = [(arm, run) for arm, runs in arms.items() for run in runs]
    return {
        "arm": [arm for arm, _ in rows],
        "seed": [str(run.seed) for _, run in rows],
        metric: [run.value(metric) for _, run in rows],
        "in_a_pair": [run.seed in paired[arm] for arm, run in rows],
        "status": [run.status for _, run in rows],
        "run_id": [run.run_id for _, run in rows],
    }
