"""The tables of the consensus suite: accuracy, intervals and the support flag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from consensus_specifications import SPECIFICATIONS, FloatArray

SETTINGS = ("refit", "held-out")
LIMIT = 1.10


def cells_of(raw: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the trials of each cell, ``setting/specification``."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, raw.open()):
        cells.setdefault("/".join(line["key"][:2]), []).extend(line["trials"])
    return cells


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
