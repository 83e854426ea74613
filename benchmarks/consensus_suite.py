"""Consensus against the field over 23 specifications, with and without a held-out reference.

    python benchmarks/consensus_suite.py --data FOLDER --trials 100 --seed 1 --out
    consensus_suite.md

f is a network of the paper's recipe. "refit": only training rows are given, f is refitted
five-fold. "held-out": f is trained on one half, the other half is the labelled reference. All
numbers come from the same trials.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))

from one_step_data import FloatArray, Trials, benchmark, synthetic

from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.direct_loss import DirectLossEstimator
from trueup.monitoring.networks import StackedMLP, TrainingPlan, as_tensor, seeded
from trueup.monitoring.objectives import Objective
from trueup.monitoring.out_of_fold import out_of_fold_predictions
from trueup.monitoring.two_step import fit_mean

SETTINGS = ("refit", "held-out")
BLOCK = 25
LIMIT = 1.10
SPECIFICATIONS = (
    *(f"{name}:iid" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:soft" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:window" for name in ("mg", "space-ga", "abalone", "cpusmall")),
    *(f"{name}:hard" for name in ("mg", "space-ga", "abalone")),
    *(f"{kind}:{shift}" for kind in "ABC" for shift in ("none", "shifted")),
)


class Network:
    """A regression network with ``fit`` and ``predict``: the monitored model."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        self.network = _fitted(X.tobytes(), y.tobytes(), X.shape, self.random_state)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return self.network.predict(X)[0]


@lru_cache(maxsize=8)
def _fitted(x: bytes, y: bytes, shape: tuple[int, int], random_state: int) -> StackedMLP:
    """Return the network of these rows; the folds of the consensus are those of the field too."""
    rows, label = np.frombuffer(x).reshape(1, *shape).copy(), np.frombuffer(y)[None].copy()
    generator = seeded(random_state)
    return fit_mean(as_tensor(rows), as_tensor(label), 64, TrainingPlan(), generator)


def draw(specification: str, folder: Path, trials: int, seed: int) -> Trials:
    """Return the trials of a specification."""
    name, shift = specification.split(":")
    if name in "ABC":
        law = (0.0, 1.0) if shift == "none" else (1.0, 0.5)
        return synthetic(name, trials, seed, m=5_000, op=law)
    return benchmark(folder, name, trials, seed, shift)


def refit_trial(data: Trials, index: int) -> dict[str, Any]:
    """Judge f with nothing but its training rows."""
    x, y, x_op = data.x[index], data.y[index], data.x_op[index]
    model = Network(index).fit(x, y)
    f, f_op = model.predict(x), model.predict(x_op)
    unseen = out_of_fold_predictions(model, x, y, probability=False, random_state=0)
    consensus = ConsensusEstimator(model, reference="train").fit(x, f, y)
    field = {"cross-validation": float(((y - unseen) ** 2).mean())}
    return _judge(consensus, data, index, f_op, field, (x, unseen, y), (x, f, y))


def held_out_trial(data: Trials, index: int) -> dict[str, Any]:
    """Judge f with a labelled reference that it has not seen."""
    x, y, x_op = data.x[index], data.y[index], data.x_op[index]
    half = len(y) // 2
    model = Network(index).fit(x[:half], y[:half])
    f, f_op = model.predict(x), model.predict(x_op)
    reference = x[half:], f[half:], y[half:]
    consensus = ConsensusEstimator().fit(*reference)
    field = {"cross-validation": float(((y - f)[half:] ** 2).mean())}
    return _judge(consensus, data, index, f_op, field, reference, (x[:half], f[:half], y[:half]))


def _judge(
    consensus: ConsensusEstimator,
    data: Trials,
    index: int,
    f_op: FloatArray,
    field: dict[str, float],
    unseen: tuple[FloatArray, FloatArray, FloatArray],
    seen: tuple[FloatArray, FloatArray, FloatArray],
) -> dict[str, Any]:
    x_op = data.x_op[index]
    estimate = consensus.estimate(x_op, f_op)
    errors = (unseen[2] - unseen[1]) ** 2
    rows = DirectLossEstimator().fit(unseen[0], unseen[1], errors).squared_errors(x_op, f_op)
    field["direct loss"] = float(rows.mean())
    field["L"] = _one_step("l", seen, x_op, f_op)
    field["K*"] = estimate.members.get("one_step_train") or _one_step("k_star", seen, x_op, f_op)
    field["training MSE"] = float(((seen[2] - seen[1]) ** 2).mean())
    reach = 3.0 * errors.std() / len(x_op) ** 0.5
    return {
        "true": float(((data.y_op[index] - f_op) ** 2).mean()),
        "consensus": estimate.mse,
        "low": estimate.low,
        "high": estimate.high,
        "trusted": estimate.trusted,
        "direct low": max(field["direct loss"] - reach, 0.0),
        "direct high": field["direct loss"] + reach,
        **field,
        "members": dict(estimate.members),
        "diagnostics": dict(estimate.diagnostics),
    }


def _one_step(
    objective: Objective,
    seen: tuple[FloatArray, FloatArray, FloatArray],
    x_op: FloatArray,
    f_op: FloatArray,
) -> float:
    check = OneStepCheckModel(objective).fit_encoded(*seen)
    return float(check.squared_errors(x_op, f_op).mean())


def collect(folder: Path, trials: int, seed: int, path: Path, minutes: float) -> None:
    """Append blocks of trials that the file does not hold yet, a JSON line each.

    All cells get their first block before any gets its second, so that a run which is stopped early
    has as many trials in each. No block is begun after so many minutes.
    """
    done = {tuple(json.loads(line)["key"]) for line in path.open()} if path.exists() else set()
    end = time.monotonic() + 60.0 * minutes
    for start, specification in product(range(0, trials, BLOCK), SPECIFICATIONS):
        asked = [(setting, specification, start) for setting in JUDGES]
        if done.issuperset(asked) or time.monotonic() > end:
            continue
        data = draw(specification, folder, trials, seed)
        for key in asked:
            if key in done or time.monotonic() > end:
                continue
            block = range(start, min(start + BLOCK, trials))
            found = [JUDGES[key[0]](data, index) for index in block]
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "trials": found}) + "\n")
            print(*key, flush=True)


def cells_of(raw: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the trials of each cell, ``setting/specification``."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, raw.open()):
        cells.setdefault("/".join(line["key"][:2]), []).extend(line["trials"])
    return cells


JUDGES = {"refit": refit_trial, "held-out": held_out_trial}
NAMES = ("consensus", "direct loss", "K*", "L", "training MSE")
GROUPS = ("iid", "soft", "window", "hard", "none", "shifted")


def errors(trials: list[dict[str, Any]], name: str) -> FloatArray:
    """Return the absolute estimation error of each trial."""
    return np.array([abs(trial[name] - trial["true"]) for trial in trials])


def chance_of_ratio(ours: FloatArray, theirs: FloatArray, seed: int = 0) -> float:
    """Return the share of paired bootstrap samples whose ratio of mean errors is at most 1.10."""
    index = np.random.default_rng(seed).integers(0, len(ours), (20_000, len(ours)))
    ratio = ours[index].mean(1) / theirs[index].mean(1)
    return float((1 + (ratio <= LIMIT).sum()) / (1 + len(ratio)))


def holm_rejections(chances: list[float], level: float = 0.05) -> int:
    """Return how many hypotheses Holm's procedure rejects."""
    for rank, chance in enumerate(sorted(chances)):
        if chance > level / (len(chances) - rank):
            return rank
    return len(chances)


def accuracy_lines(cells: dict[str, list[dict[str, Any]]], setting: str) -> list[str]:
    """Return the table of mean error over that of cross-validation, one row a specification."""
    lines = [
        f"## {setting}: mean error divided by that of cross-validation",
        "",
        "| specification | trials | true MSE | " + " | ".join(NAMES) + " |",
        "|---" * (len(NAMES) + 3) + "|",
    ]
    ratios: dict[str, list[float]] = {name: [] for name in NAMES}
    wins, chances = 0, list[float]()
    present = [name for name in SPECIFICATIONS if f"{setting}/{name}" in cells]
    for specification in present:
        trials = cells[f"{setting}/{specification}"]
        base = errors(trials, "cross-validation")
        row = {name: float(errors(trials, name).mean() / base.mean()) for name in NAMES}
        for name, value in row.items():
            ratios[name].append(value)
        wins += row["consensus"] < row["direct loss"]
        chances.append(chance_of_ratio(errors(trials, "consensus"), base))
        true = np.mean([trial["true"] for trial in trials])
        numbers = " | ".join(f"{value:.2f}" for value in row.values())
        lines.append(f"| {specification} | {len(trials)} | {true:.3f} | {numbers} |")
    means = {name: np.exp(np.mean(np.log(values))) for name, values in ratios.items()}
    total = " | ".join(f"**{value:.2f}**" for value in means.values())
    over_direct = means["consensus"] / means["direct loss"]
    return [
        *lines,
        f"| geometric mean of {len(present)} | | | {total} |",
        "",
        f"Consensus is better than direct loss estimation in {wins} of {len(present)} "
        f"specifications, with a geometric-mean ratio of {over_direct:.2f}. Specifications "
        f"whose 95% lower bound is above {LIMIT:.2f} times cross-validation (paired bootstrap, "
        f"Holm over {len(present)}): {holm_rejections(chances)}.",
        "",
    ]


def interval_lines(cells: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return coverage, width and interval score of the 90% intervals, and the support flag."""
    lines = [
        "## Intervals (nominal 90%) and the support flag",
        "",
        "| setting, shift | trials | coverage | median high/low | interval score | "
        "coverage, direct loss +- 3 sigma | its score | score less its (standard error) | "
        "not trusted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        for group in GROUPS:
            trials = [
                trial
                for key, values in cells.items()
                if key.startswith(f"{setting}/") and key.endswith(f":{group}")
                for trial in values
            ]
            if trials:
                lines.append(_interval_row(f"{setting}, {group}", trials))
    return lines


def _interval_row(name: str, trials: list[dict[str, Any]]) -> str:
    true = np.array([trial["true"] for trial in trials])
    low, high = (np.array([trial[end] for trial in trials]) for end in ("low", "high"))
    d_low, d_high = (
        np.array([trial[end] for trial in trials]) for end in ("direct low", "direct high")
    )
    ours, theirs = _scores(low, high, true), _scores(d_low, d_high, true)
    refused = np.mean([not trial["trusted"] for trial in trials])
    return (
        f"| {name} | {len(trials)} | {_covered(low, high, true):.2f} | "
        f"{np.median(high / low):.2f} | {ours.mean():.2f} | "
        f"{_covered(d_low, d_high, true):.2f} | {theirs.mean():.2f} | "
        f"{(ours - theirs).mean():+.2f} ({(ours - theirs).std() / len(ours) ** 0.5:.2f}) | "
        f"{refused:.2f} |"
    )


def _covered(low: FloatArray, high: FloatArray, true: FloatArray) -> float:
    return float(((low <= true) & (true <= high)).mean())


def _scores(low: FloatArray, high: FloatArray, true: FloatArray) -> FloatArray:
    """Return the interval score of each trial at 90%; lower is better."""
    below, above = np.maximum(low - true, 0.0), np.maximum(true - high, 0.0)
    return np.asarray(high - low + (2.0 / 0.1) * (below + above))


def summarise(raw: Path, title: str) -> str:
    """Return the whole result as Markdown."""
    cells = cells_of(raw)
    lines = [
        "# Consensus against the field",
        "",
        title,
        "",
        *(line for setting in SETTINGS for line in accuracy_lines(cells, setting)),
        *interval_lines(cells),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--raw", type=Path, required=True, help="JSON lines; a rerun goes on.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    parser.add_argument("--minutes", type=float, default=np.inf, help="Begin no cell later.")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    collect(arguments.data, arguments.trials, arguments.seed, arguments.raw, arguments.minutes)
    title = f"`consensus_suite.py --trials {arguments.trials} --seed {arguments.seed}`"
    arguments.out.write_text(summarise(arguments.raw, title))


if __name__ == "__main__":
    main()
