"""Consensus for tree ensembles, and for probabilities by their Brier score.

    python benchmarks/consensus_other_models.py --data FOLDER --raw RAW --trials 50 --seed 2

Trees: 500 training rows, refitted five-fold, 500 operational rows of the same distribution. Brier:
a logistic regression that misses an interaction, a held-out reference of 20,000 rows, and 5,000
operational rows with moved features.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))

from one_step_data import FloatArray, benchmark

from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.panel.fitting import out_of_fold_predictions

TREES = {"random forest": RandomForestRegressor, "gradient boosting": HistGradientBoostingRegressor}
SETS = ("mg", "space-ga", "abalone")
REFERENCE_ROWS = 20_000
COLUMNS = ("consensus", "cross-validation", "direct loss", "training MSE")


class Tree:
    """A tree ensemble; the same rows are fitted once, for the consensus and the field."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        self.fitted = _fitted(self.kind, X.tobytes(), y.tobytes(), X.shape)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.fitted.predict(X))


@lru_cache(maxsize=8)
def _fitted(kind: str, x: bytes, y: bytes, shape: tuple[int, int]) -> Any:
    rows = np.frombuffer(x).reshape(shape).copy()
    return TREES[kind](random_state=0).fit(rows, np.frombuffer(y).copy())


def tree_trial(folder: Path, name: str, kind: str, seed: int) -> dict[str, float]:
    """Return truth and estimates of one trial."""
    data = benchmark(folder, name, 1, seed, "iid")
    x, y, x_op = data.x[0], data.y[0], data.x_op[0]
    model = Tree(kind).fit(x, y)
    f, f_op = model.predict(x), model.predict(x_op)
    consensus = ConsensusEstimator(model, reference="train").fit(x, f, y).estimate(x_op, f_op)
    unseen = out_of_fold_predictions(model, x, y, probability=False, random_state=0)
    errors = (y - unseen) ** 2
    direct = DirectLossEstimator().fit(x, unseen, errors).squared_errors(x_op, f_op)
    return {
        "true": float(((data.y_op[0] - f_op) ** 2).mean()),
        "consensus": consensus.mse,
        "low": consensus.low,
        "high": consensus.high,
        "cross-validation": float(errors.mean()),
        "direct loss": float(direct.mean()),
        "training MSE": float(((y - f) ** 2).mean()),
    }


def brier_trial(seed: int) -> dict[str, float]:
    """Return truth, estimates and interval of one trial."""
    rng = np.random.default_rng([seed, 7])
    train, reference = _labelled(rng, 2_000, 0.0), _labelled(rng, REFERENCE_ROWS, 0.0)
    operational = _labelled(rng, 5_000, 0.8)
    model = LogisticRegression().fit(*train)
    f, f_op = (model.predict_proba(rows[0])[:, 1] for rows in (reference, operational))
    consensus = ConsensusEstimator().fit(reference[0], f, reference[1])
    estimate = consensus.estimate(operational[0], f_op)
    return {
        "true": float(((operational[1] - f_op) ** 2).mean()),
        "consensus": estimate.mse,
        "low": estimate.low,
        "high": estimate.high,
        "cross-validation": float(((reference[1] - f) ** 2).mean()),
        **estimate.members,
    }


def _labelled(rng: np.random.Generator, n: int, shift: float) -> tuple[FloatArray, FloatArray]:
    x = rng.normal(size=(n, 5)) + shift * np.array([1.0, -0.5, 0.0, 0.0, 0.0])
    chance = expit(1.5 * x[:, 0] + x[:, 1] - 0.7 * x[:, 0] * x[:, 2] + 0.5 * (x[:, 3] ** 2 - 1.0))
    return x, (rng.random(n) < chance).astype(float)


def collect(arguments: argparse.Namespace) -> None:
    """Append the trials that the file does not hold yet; begin none after so many minutes."""
    raw, end = arguments.raw, time.monotonic() + 60.0 * arguments.minutes
    done = {tuple(json.loads(line)["key"]) for line in raw.open()} if raw.exists() else set()
    trials = range(arguments.trials)
    asked = [("Brier", "", trial) for trial in trials]
    asked += [(name, kind, trial) for trial in trials for name in SETS for kind in TREES]
    for key in asked:
        if key in done or time.monotonic() > end:
            continue
        name, kind, trial = key
        seed = 1_000 * arguments.seed + trial
        found = (
            brier_trial(seed) if name == "Brier" else tree_trial(arguments.data, name, kind, seed)
        )
        with raw.open("a") as file:
            file.write(json.dumps({"key": key, "trial": found}) + "\n")


def summarise(raw: Path, title: str) -> str:
    """Return both tables as Markdown."""
    cells: dict[tuple[str, str], list[dict[str, float]]] = {}
    for line in map(json.loads, raw.open()):
        cells.setdefault((line["key"][0], line["key"][1]), []).append(line["trial"])
    brier = cells.pop(("Brier", ""), [])
    names = ("model, data", "trials", "true MSE", *COLUMNS, "consensus / CV", "covered")
    lines = [
        "# Consensus for tree ensembles and for probabilities",
        "",
        title,
        "",
        "## Tree ensembles, refitted: mean absolute error of the estimate",
        "",
        f"| {' | '.join(names)} |",
        "|---" * 9 + "|",
        *(_tree_row(name, kind, trials) for (name, kind), trials in cells.items()),
        "",
    ]
    return "\n".join([*lines, *_brier_lines(brier)]) + "\n"


def _tree_row(name: str, kind: str, trials: list[dict[str, float]]) -> str:
    errors = {c: np.mean([abs(t[c] - t["true"]) for t in trials]) for c in COLUMNS}
    ratio = errors["consensus"] / errors["cross-validation"]
    numbers = " | ".join(f"{value:.3f}" for value in errors.values())
    true = np.mean([t["true"] for t in trials])
    return (
        f"| {kind}, {name} | {len(trials)} | {true:.3f} | {numbers} | {ratio:.2f} "
        f"| {_covered(trials):.2f} |"
    )


def _covered(trials: list[dict[str, float]]) -> float:
    return float(np.mean([t["low"] <= t["true"] <= t["high"] for t in trials]))


def _brier_lines(trials: list[dict[str, float]]) -> list[str]:
    true = np.mean([t["true"] for t in trials])
    names = [n for n in trials[0] if n not in ("true", "low", "high")] if trials else []
    return [
        f"## Brier score, moved features, {REFERENCE_ROWS:,} reference rows",
        "",
        f"{len(trials)} trials; mean of the true Brier score {true:.4f}; {_covered(trials):.2f} of "
        "the 90% intervals held it.",
        "",
        "| estimator | mean estimate / mean truth - 1 | mean absolute error |",
        "|---|---|---|",
        *(
            f"| {name} | {np.mean([t[name] for t in trials]) / true - 1.0:+.3f} "
            f"| {np.mean([abs(t[name] - t['true']) for t in trials]):.4f} |"
            for name in names
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--raw", type=Path, required=True, help="JSON lines; a rerun goes on.")
    parser.add_argument("--minutes", type=float, default=np.inf, help="Begin no trial later.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    collect(arguments)
    title = f"`consensus_other_models.py --trials {arguments.trials} --seed {arguments.seed}`"
    arguments.out.write_text(summarise(arguments.raw, title))


if __name__ == "__main__":
    main()
