"""The seed race on real trainings: the flights network, 60 random configurations.

``python benchmarks/seed_race_flights.py --seeds 10`` trains every configuration under every seed
once, keeps the results in ``build/seed_race_flights.csv`` (it resumes) and writes
``seed_race_flights.md``. Every rule is then replayed on them: a replicate draws an order of seeds
and of configurations. The truth is the calibrated mean over all seeds.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import optuna
import torch
from numpy.typing import NDArray
from scipy import stats
from seed_race_rules import Rule, fixed_seeds, median_pruner, race, smac_like, wilcoxon_pruner
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
from tune import train_flights  # noqa: E402 - a script of the examples

FloatArray = NDArray[np.float64]
RESULTS = ROOT / "build" / "seed_race_flights.csv"
CONFIGS, REPLICATES = 60, 600
UNIT = 1e-4


def configurations() -> list[dict[str, object]]:
    """Draw the configurations as a random search would."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    space = {
        "architecture": optuna.distributions.CategoricalDistribution(["mlp", "deepfm"]),
        "decay": optuna.distributions.CategoricalDistribution([False, True]),
        "learning_rate": optuna.distributions.FloatDistribution(5e-4, 1e-2, log=True),
        "embedding": optuna.distributions.IntDistribution(4, 16),
        "width": optuna.distributions.IntDistribution(16, 128, log=True),
        "batch_size": optuna.distributions.CategoricalDistribution([256, 512, 1024]),
    }
    return [study.ask(space).params for _ in range(CONFIGS)]


def train_all(n_seeds: int) -> None:
    """Train what is missing, seed by seed, so that an early stop leaves whole seeds."""
    torch.set_num_threads(1)
    RESULTS.parent.mkdir(exist_ok=True)
    known = set(read_results())
    todo = [(c, s) for s in range(n_seeds) for c in range(CONFIGS) if (c, s) not in known]
    drawn = configurations()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        for config, seed in tqdm(todo, disable=None):
            result = train_flights(optuna.trial.FixedTrial(drawn[config]), seed)
            writer.writerow([config, seed, result.vanilla, result.calibrated])
            file.flush()


def read_results() -> dict[tuple[int, int], tuple[float, float]]:
    """Return (vanilla, calibrated) of each finished (configuration, seed)."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        return {
            (int(config), int(seed)): (float(vanilla), float(calibrated))
            for config, seed, vanilla, calibrated in csv.reader(file)
        }


def result_tables() -> tuple[FloatArray, FloatArray]:
    """Return the vanilla and the calibrated results, shape (configurations, whole seeds)."""
    found = read_results()
    seeds = 0
    while all((config, seeds) in found for config in range(CONFIGS)):
        seeds += 1
    rows = [[found[config, seed] for seed in range(seeds)] for config in range(CONFIGS)]
    both = np.array(rows)
    return both[:, :, 0], both[:, :, 1]


def rules(seeds: int) -> dict[str, Rule]:
    half = max(2, seeds // 2)
    return {
        "single seed": fixed_seeds(1),
        f"fixed {half}": fixed_seeds(half),
        f"fixed {seeds}": fixed_seeds(seeds),
        f"MedianPruner, {seeds}": median_pruner(seeds),
        f"WilcoxonPruner(0.1), {seeds}": wilcoxon_pruner(seeds),
        f"SMAC3-like, {seeds}": smac_like(seeds),
        f"eliminator alone, {seeds}": race(seeds, 0, n_max=seeds),
        "race, 1 seed + 30": race(1, 30, n_max=seeds),
        "race, 2 seeds + 40": race(2, 40, n_max=seeds),
    }


def replay(table: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return results of shape (replicates, configurations, seeds) and the configurations' order."""
    rng = np.random.default_rng(0)
    shape = (REPLICATES, *table.shape)
    seeds = np.stack([rng.permutation(table.shape[1]) for _ in range(REPLICATES)])
    order = np.stack([rng.permutation(table.shape[0]) for _ in range(REPLICATES)])
    values = table[order[:, :, None], seeds[:, None, :]]
    assert values.shape == shape
    return values, order


def replay_rows(vanilla: FloatArray, calibrated: FloatArray) -> Iterator[str]:
    """Yield one row of Markdown for each rule and metric."""
    truth = calibrated.mean(1)
    rows = np.arange(REPLICATES)
    for name, rule in rules(calibrated.shape[1]).items():
        for metric, table in (("vanilla", vanilla), ("calibrated", calibrated)):
            values, order = replay(table)
            choice = rule(values)
            chosen = order[rows, choice.selected]
            regret = truth[chosen] - truth.min()
            best = choice.dropped[rows, (order == truth.argmin()).argmax(1)]
            yield (
                f"| {name} | {metric} | {choice.trainings.mean():.0f} "
                f"| {np.mean(regret <= UNIT):.2f} | {regret.mean() / UNIT:.2f} "
                f"| {np.mean(best):.3f} |"
            )


def noise_lines(vanilla: FloatArray, calibrated: FloatArray) -> Iterator[str]:
    """Yield what the real noise looks like: size, share that a seed has in common, tails."""
    for metric, table in (("vanilla", vanilla), ("calibrated", calibrated)):
        residual = table - table.mean(1, keepdims=True)
        seed_effect = residual.mean(0)
        total, shared = residual.var(ddof=1), seed_effect.var(ddof=1)
        own = (residual - seed_effect) / (residual - seed_effect).std(1, keepdims=True)
        sds = table.std(1, ddof=1)
        yield (
            f"- {metric}: sd over seeds {np.median(sds) / UNIT:.1f}e-4 (median; 10% to 90% of "
            f"configurations {np.quantile(sds, 0.1) / UNIT:.1f} to "
            f"{np.quantile(sds, 0.9) / UNIT:.1f}), "
            f"share of the seed {shared / total:.2f}, excess kurtosis of the rest "
            f"{stats.kurtosis(own.ravel()):.2f}"
        )


def report() -> Iterator[str]:
    vanilla, calibrated = result_tables()
    yield "# Seed race on real trainings: flights\n"
    yield "Written by `python benchmarks/seed_race_flights.py`; the method is described there.\n"
    yield (
        f"{CONFIGS} random configurations of six hyper-parameters, {calibrated.shape[1]} seeds, "
        f"{calibrated.size} trainings; log loss; regret in 1e-4 of the calibrated mean "
        "over all seeds. "
        "The rules draw their seeds from the same ones that define the truth, which "
        "flatters those that use many.\n"
    )
    yield from noise_lines(vanilla, calibrated)
    yield "\n| rule | metric | trainings | P(regret <= 1e-4) | regret | P(best dropped) |"
    yield "|---|---|---|---|---|---|"
    yield from replay_rows(vanilla, calibrated)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    train_all(arguments.seeds)
    Path(__file__).with_suffix(".md").write_text("\n".join(report()) + "\n")


if __name__ == "__main__":
    main()
