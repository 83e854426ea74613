"""Estimates of operational error over time, on streams of real data in their own order.

    python benchmarks/monitor_over_time.py --data FOLDER --raw FOLDER

A model is trained on the first periods of a stream, and a labelled reference of them makes the
check. Every later period is a batch: its error is estimated, and its labels come one batch late.
Everything is as ``trueup monitor`` does it (consensus, learning, alarms and trust) without a store.
Batches have at most 500 rows, references 1,500. Writes ``monitor_over_time.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from monitor_over_time_cases import CASES, PERIOD, TARGET, Case
from monitor_over_time_fresh import FRESH
from monitor_over_time_tables import text

from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.learning import Earlier, Raw, learn, scale_prior
from trueup.monitoring.metrics import RowMetric, metric_of
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.trust.alarms import ReferenceProfile, with_trust

RESULT = Path(__file__).with_suffix(".md")
EARLY_SHARE, TRAIN_SHARE = 0.35, 0.6
TRAIN_ROWS, REFERENCE_ROWS, BATCH_ROWS, BATCHES = 4_000, 1_500, 500, 40
LEAST_ROWS = 20
LATE = 1  # batches after which labels come


@dataclass(frozen=True)
class Row:
    """One batch of one stream."""

    case: str
    metric: str
    fresh: bool
    chosen_on: bool
    labels: int
    realized: float
    constant: float
    direct: float
    own: float
    own_low: float
    own_high: float
    first_low: float
    first_high: float
    learned: float
    low: float
    high: float
    trusted: bool
    trusted_before: bool
    auc: float


@dataclass(frozen=True)
class Fitted:
    """A model with its check."""

    model: Any
    brier: bool
    consensus: ConsensusEstimator
    direct: DirectLossEstimator
    profile: ReferenceProfile
    prior: tuple[float, ...]
    error: float
    metric: RowMetric

    def predict(self, x: pd.DataFrame) -> np.ndarray[Any, Any]:
        """Return predictions, or probabilities of class 1."""
        return predicted(self.model, x, self.brier)


def predicted(model: Any, x: pd.DataFrame, brier: bool) -> np.ndarray[Any, Any]:
    """Return predictions, or probabilities of class 1."""
    return np.asarray(model.predict_proba(x)[:, 1] if brier else model.predict(x))


def features(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the features of rows."""
    return rows.drop(columns=[TARGET, PERIOD])


def drawn(rows: pd.DataFrame, size: int) -> pd.DataFrame:
    """Return at most that many rows, in their order."""
    return rows.sample(size, random_state=0).sort_index() if len(rows) > size else rows


def split(rows: pd.DataFrame, case: Case) -> tuple[pd.DataFrame, pd.DataFrame, list[pd.DataFrame]]:
    """Return training rows, reference and batches."""
    periods = np.sort(rows[PERIOD].unique())
    start = max(3, int(np.ceil(len(periods) * EARLY_SHARE)))
    early = rows[rows[PERIOD].isin(periods[:start])]
    if case.reference == "later":
        cut = periods[max(1, int(np.ceil(start * 0.55)))]
        train, reference = early[early[PERIOD] < cut], early[early[PERIOD] >= cut]
    else:
        chosen = np.random.default_rng(1).random(len(early)) < TRAIN_SHARE
        train, reference = early[chosen], early[~chosen]
    later = [drawn(rows[rows[PERIOD] == period], BATCH_ROWS) for period in periods[start:]]
    batches = [batch for batch in later[:BATCHES] if len(batch) >= LEAST_ROWS]
    return drawn(train, TRAIN_ROWS), drawn(reference, REFERENCE_ROWS), batches


def fitted(case: Case, train: pd.DataFrame, reference: pd.DataFrame, metric: RowMetric) -> Fitted:
    """Train the model and its check."""
    model = case.model().fit(features(train), train[TARGET])
    x, labels = features(reference), reference[TARGET].to_numpy(dtype=np.float64)
    prediction = predicted(model, x, case.brier)
    errors = metric.of(labels, prediction)
    consensus = ConsensusEstimator(metric=metric.name).fit(x, prediction, labels)
    return Fitted(
        model=model,
        brier=case.brier,
        consensus=consensus,
        direct=DirectLossEstimator().fit(x.to_numpy(np.float64), prediction, errors),
        profile=ReferenceProfile.of(x, prediction),
        prior=scale_prior(consensus.period_shifts(reference[PERIOD].to_numpy())),
        error=float(errors.mean()),
        metric=metric,
    )


def monitored(case: Case, check: Fitted, batches: Sequence[pd.DataFrame]) -> list[Row]:
    """Estimate batch after batch; the labels of the last ``LATE`` ones are not known yet."""
    earlier: list[Earlier] = []
    found, quadratic = [], check.metric.is_squared_error
    for batch in batches:
        x = features(batch)
        prediction = check.predict(x)
        estimate = check.consensus.estimate(x, prediction)
        raw = Raw(estimate.mse, estimate.low, estimate.high, check.error)
        known = [
            one if place < len(earlier) - LATE else replace(one, realized=None)
            for place, one in enumerate(earlier)
        ]
        learned, first = learn(raw, known, check.prior), learn(raw, (), check.prior)
        alarms = check.profile.alarms(x, prediction)
        labels = batch[TARGET].to_numpy(dtype=np.float64)
        realized = float(check.metric.of(labels, prediction).mean())
        found.append(
            Row(
                case=case.name,
                metric="brier_score" if quadratic and case.brier else check.metric.name,
                fresh=case in FRESH,
                chosen_on=case.chosen_on,
                labels=learned.labels,
                realized=realized,
                constant=check.error,
                direct=float(check.direct.squared_errors(x.to_numpy(float), prediction).mean()),
                own=raw.mse,
                own_low=raw.low,
                own_high=raw.high,
                first_low=first.low,
                first_high=first.high,
                learned=learned.mse,
                low=learned.low,
                high=learned.high,
                trusted=with_trust(estimate, learned, alarms).trusted,
                trusted_before=estimate.trusted,
                auc=estimate.diagnostics["domain_auc"],
            )
        )
        earlier.append(Earlier(raw, realized, learned.outlook))
    return found


def run(case: Case, folder: Path, metric: str) -> pd.DataFrame:
    """Return the batches of one case."""
    rows = case.load(folder).dropna().reset_index(drop=True)
    train, reference, batches = split(rows, case)
    check = fitted(case, train, reference, metric_of(metric))
    return pd.DataFrame([asdict(row) for row in monitored(case, check, batches)])


def main() -> None:
    """Run all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--raw", type=Path, required=True, help="Folder that keeps the batches.")
    arguments = parser.parse_args()
    parts, started = [], time.process_time()
    for case in (*CASES, *FRESH):
        for metric in ("mse", "log_loss" if case.brier else "mae"):
            kept = arguments.raw / f"{case.name}, {metric}.csv".replace(":", "")
            if not kept.exists():
                run(case, arguments.data, metric).to_csv(kept, index=False)
                print(kept.stem, f"{time.process_time() - started:.0f} s", flush=True)
            parts.append(pd.read_csv(kept))
    RESULT.write_text(text(pd.concat(parts, ignore_index=True)), encoding="utf-8")


if __name__ == "__main__":
    main()
