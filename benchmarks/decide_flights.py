"""What pairing and calibration are worth on real pipelines: seeds to a verdict on the flights data.

``python benchmarks/decide_flights.py`` trains the pipelines of the example (some minutes on one
core) and writes ``decide_flights.md`` beside it. Runs with the same seed share their data order.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import stdtrit
from tqdm import tqdm

from trueup import evaluate
from trueup.comparison import compare, order_note, variance_reduction
from trueup.decide.e_process import confidence_radius, prefix_moments

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from click_model import DEEPFM, MLP, MLP_DECAYED, Pipeline, load_flights, train

FloatArray = NDArray[np.float64]

N_SEEDS = 40
ALPHA = 0.05
PAIRS = (
    (DEEPFM, MLP),
    (MLP, MLP_DECAYED),
    (MLP, replace(MLP, name="MLP, width 32", width=32)),
    (MLP, replace(MLP, name="MLP, embedding 6", embedding=6)),
    (DEEPFM, replace(DEEPFM, name="DeepFM, embedding 6", embedding=6)),
    (DEEPFM, replace(DEEPFM, name="DeepFM, rate 0.0017", learning_rate=1.7e-3)),
)


@dataclass(frozen=True)
class Values:
    """Vanilla and calibrated log loss of each seed, shape (N_SEEDS,)."""

    vanilla: FloatArray
    calibrated: FloatArray


def train_all() -> dict[Pipeline, Values]:
    torch.set_num_threads(1)
    rows = load_flights().validation
    found = {}
    for pipeline in tqdm(dict.fromkeys(p for pair in PAIRS for p in pair), disable=None):
        scored = [
            evaluate(rows.late, y_logit=train(pipeline, seed), row_id=rows.row_id)
            for seed in range(N_SEEDS)
        ]
        found[pipeline] = Values(
            np.array([e.vanilla for e in scored]), np.array([e.calibrated for e in scored])
        )
    return found


def variance_ratio(a: Values, b: Values) -> tuple[float, float, float]:
    """Return var(paired calibrated difference) / var(unpaired vanilla difference) and its interval.

    The interval is a jackknife of the logarithm over seeds, as in ``variance_reduction``.
    """

    def log_ratio(kept: NDArray[np.intp]) -> float:
        paired = np.var((a.calibrated - b.calibrated)[kept], ddof=1)
        unpaired = np.var(a.vanilla[kept], ddof=1) + np.var(b.vanilla[kept], ddof=1)
        return math.log(paired / unpaired)

    n = len(a.vanilla)
    left_out = [log_ratio(np.delete(np.arange(n), i)) for i in range(n)]
    half = float(stdtrit(n - 1, 0.975)) * math.sqrt((n - 1) * np.var(left_out))
    ratio = log_ratio(np.arange(n))
    return math.exp(ratio), math.exp(ratio - half), math.exp(ratio + half)


def median_seeds(a: FloatArray, b: FloatArray, *, paired: bool) -> float:
    """Return the median number of pairs to the first verdict, over resampled sequences of seeds."""
    rng = np.random.default_rng(0)
    first = rng.integers(len(a), size=(2000, 300))
    second = first if paired else rng.integers(len(b), size=first.shape)
    moments = prefix_moments(a[first] - b[second])
    decided = np.abs(moments.mean) > confidence_radius(moments, ALPHA)
    return float(np.median(np.where(decided.any(axis=1), np.argmax(decided, axis=1) + 1, np.inf)))


def pair_row(a: Pipeline, b: Pipeline, values: dict[Pipeline, Values]) -> str:
    first, second = values[a], values[b]
    ratio, low, high = variance_ratio(first, second)
    vanilla, calibrated = (
        compare(dict(enumerate(x)), dict(enumerate(z)))
        for x, z in (
            (first.vanilla, second.vanilla),
            (first.calibrated, second.calibrated),
        )
    )
    seeds = [
        median_seeds(first.vanilla, second.vanilla, paired=False),
        median_seeds(first.calibrated, second.calibrated, paired=False),
        median_seeds(first.vanilla, second.vanilla, paired=True),
        median_seeds(first.calibrated, second.calibrated, paired=True),
    ]
    agree = "no" if order_note(vanilla, calibrated) else "yes"
    shown = " | ".join(f"{n:.0f}" if math.isfinite(n) else "> 300" for n in seeds)
    return (
        f"| {a.name} - {b.name} | {vanilla.difference:+.5f} | {calibrated.difference:+.5f} "
        f"| {agree} | {ratio:.2f} [{low:.2f}, {high:.2f}] | {shown} |"
    )


def pipeline_row(pipeline: Pipeline, values: Values) -> str:
    reduction = variance_reduction(values.vanilla, values.calibrated)
    return (
        f"| {pipeline.name} | {values.vanilla.mean():.5f} | {values.vanilla.std(ddof=1):.5f} "
        f"| {values.calibrated.mean():.5f} | {values.calibrated.std(ddof=1):.5f} | {reduction} |"
    )


def main() -> None:
    values = train_all()
    pipelines = "\n".join(pipeline_row(p, v) for p, v in values.items())
    pairs = "\n".join(pair_row(a, b, values) for a, b in PAIRS)
    text = f"""# Seeds to a verdict on the flights data

Written by `python benchmarks/decide_flights.py`: {N_SEEDS} seeds per pipeline, one epoch on 90,000
rows, log loss on 30,000 fixed validation rows; calibrated means five folds. Runs that share a seed
share their data order.

| pipeline | vanilla mean | sd | calibrated mean | sd | reduction of the sd |
|---|---|---|---|---|---|
{pipelines}

The variance ratio is var(paired calibrated difference) / var(unpaired vanilla difference), with a
95% interval over seeds; asked for: at most .60. Seeds to a verdict: median over 2,000 sequences of
seeds drawn from these runs, looked at after each, at a level of 5%.

| candidate - baseline | vanilla difference | calibrated | same order | variance ratio \
| seeds: unpaired vanilla | unpaired calibrated | paired vanilla | paired calibrated |
|---|---|---|---|---|---|---|---|---|
{pairs}

Reading: for the two pairs that need at least 20 vanilla seeds and whose order is clear and the
same in both metrics, pairing does most of the work. Where two pipelines hardly differ (embedding 6
of the MLP), calibration can lose: the difference shrinks more than the noise. The pair of widths
turns its order: part of its vanilla difference is mean calibration.
"""
    Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
