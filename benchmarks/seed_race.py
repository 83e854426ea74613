"""What the seed race saves and what it promises, by simulation.

``python benchmarks/seed_race.py`` writes ``benchmarks/seed_race.md``. A result of configuration i
under seed s is ``mean_i + sd_i (sqrt(rho) z_s + sqrt(1 - rho) e_is)``. The vanilla metric has a
standard deviation over seeds of 3.9e-4 to 7.8e-4, the calibrated one of 3.6e-4 to 4.4e-4, with the
same means.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import optuna
from numpy.typing import NDArray
from scipy import stats
from seed_race_rules import (
    N_MAX,
    Rule,
    fixed_seeds,
    median_pruner,
    race,
    smac_like,
    wilcoxon_pruner,
)

from trueup.decide.race import RaceRule, Variance
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, select_best

FloatArray = NDArray[np.float64]

CONFIGS, FRESH = 60, 5
LOW, HIGH = 0.3729, 0.3756
UNIT = 1e-4
SCENARIOS = ("search", "uniform", "bell")
NOISES = ("normal", "t5", "skewed")
RULES: dict[str, Rule] = {
    "single seed": fixed_seeds(1),
    "fixed 3": fixed_seeds(3),
    "fixed 5": fixed_seeds(5),
    "fixed 10": fixed_seeds(10),
    "fixed 20": fixed_seeds(20),
    "MedianPruner, 10": median_pruner(10),
    "WilcoxonPruner(0.1), 10": wilcoxon_pruner(10),
    "SMAC3-like, 10": smac_like(10),
    "eliminator alone, 10": race(10, 0),
    "race, 1 seed + 60": race(1, 60),
    "race, 2 seeds + 75": race(2, 75),
    "race, 2 seeds + 75, no eliminator": race(2, 75, alpha=1e-12),
    "race, 2 seeds + 150": race(2, 150),
}


def standard_noise(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> FloatArray:
    """Draw noise with mean 0 and variance 1."""
    if kind == "t5":
        return rng.standard_t(5, shape) / np.sqrt(5 / 3)
    if kind == "skewed":
        return rng.exponential(1.0, shape) - 1.0
    return rng.standard_normal(shape)


def true_means(rng: np.random.Generator, scenario: str, replicates: int) -> FloatArray:
    """Draw the means of the configurations: lower is better.

    "search": 20 random ones, then 40 that a sampler concentrates near the optimum; "uniform";
    "bell".
    """
    shape = (replicates, CONFIGS)
    uniform = rng.uniform(LOW, HIGH, shape)
    if scenario == "search":
        near = np.minimum(LOW + rng.exponential(5e-4, shape), HIGH)
        return np.where(np.arange(CONFIGS) < 20, uniform, near)
    if scenario == "bell":
        return np.clip(rng.normal(0.3742, 5e-4, shape), LOW, HIGH)
    return uniform


def draw(
    rng: np.random.Generator, scenario: str, replicates: int, rho: float = 0.0
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the means and the results of both metrics, which share their noise."""
    mean = true_means(rng, scenario, replicates)
    seeds = N_MAX + FRESH
    noise = np.sqrt(rho) * rng.standard_normal((replicates, 1, seeds))
    noise = noise + np.sqrt(1 - rho) * rng.standard_normal((replicates, CONFIGS, seeds))
    place = rng.uniform(size=(replicates, CONFIGS))
    sds = {"vanilla": 3.9e-4 + 3.9e-4 * place, "calibrated": 3.6e-4 + 0.8e-4 * place}
    return mean, {metric: mean[..., None] + sd[..., None] * noise for metric, sd in sds.items()}


def compare_rules(scenario: str, replicates: int, rho: float) -> Iterator[str]:
    """Yield one row of Markdown for each rule and metric."""
    mean, results = draw(np.random.default_rng([1, replicates]), scenario, replicates, rho)
    rows, best = np.arange(replicates), mean.argmin(1)
    for name, rule in RULES.items():
        for metric, values in results.items():
            choice = rule(values)
            regret = mean[rows, choice.selected] - mean[rows, best]
            fresh = values[rows, choice.selected, N_MAX:].mean(1) - mean[rows, choice.selected]
            claim = choice.claimed - mean[rows, choice.selected]
            error = regret.std(ddof=1) / np.sqrt(replicates)
            yield (
                f"| {name} | {metric} | {choice.trainings.mean():.0f} "
                f"| {np.mean(regret <= UNIT):.2f} | {regret.mean() / UNIT:.2f} "
                f"± {error / UNIT:.2f} | {claim.mean() / UNIT:+.1f} "
                f"| {fresh.mean() / UNIT:+.2f} | {choice.dropped[rows, best].mean():.3f} |"
            )


def false_eliminations(
    noise: str,
    rho: float,
    sd_factor: float,
    *,
    position: int,
    replicates: int,
    variance: Variance = "moderated",
    seed: int = 0,
) -> int:
    """Count the replicates in which one of 60 equal configurations is ever eliminated.

    The configuration at ``position`` is looked at after each of its 20 seeds, against ``position``
    others that all have 20 seeds; its standard deviation is ``sd_factor`` times theirs. A share
    ``rho`` of the variance is an effect of the seed, to which each configuration responds with a
    slope of its own in [0.5, 1.5]: a common slope would cancel from every paired difference.
    """
    rng = np.random.default_rng([seed, position, NOISES.index(noise), int(10 * sd_factor)])
    shared = np.sqrt(rho) * standard_noise(rng, noise, (replicates, 1, N_MAX))
    own = np.sqrt(1 - rho) * standard_noise(rng, noise, (replicates, position + 1, N_MAX))
    slope = rng.uniform(0.5, 1.5, (replicates, position + 1, 1))
    values = slope * shared + own
    values[:, position] *= sd_factor
    rule = RaceRule(CONFIGS, variance=variance)
    n_seeds = np.full((replicates, position + 1), N_MAX)
    out = np.zeros(replicates, dtype=bool)
    for done in range(1, N_MAX + 1):
        n_seeds[:, position] = done
        out |= rule.log_evidence(values, n_seeds, position).max(1) >= -np.log(rule.alpha)
    return int(out.sum())


def validity_rows(replicates: int) -> Iterator[str]:
    """Yield the counts of false eliminations for every kind of noise."""
    for variance in ("moderated", "own"):
        for noise in NOISES:
            for rho in (0.0, 0.5):
                for factor in (1.0, 2.0, 3.0, 5.0, 8.0):
                    counts = [
                        false_eliminations(
                            noise, rho, factor,
                            position=position, replicates=replicates, variance=variance,
                        )
                        for position in (4, 29, 59)
                    ]  # fmt: skip
                    cells = " | ".join(str(count) for count in counts)
                    yield f"| {variance} | {noise} | {rho} | {factor:g} | {cells} |"


def bowl(params: dict[str, float]) -> float:
    """Return the true mean of a configuration in five dimensions."""
    return float(LOW + 27e-4 * np.mean([(params[f"x{i}"] - 0.3) ** 2 for i in range(5)]) / 0.25)


def bowl_training(sd: float, replicate: int):
    """Return a ``train``: the bowl plus noise that configuration and seed determine."""

    def train(trial, seed):
        params = {f"x{i}": trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(5)}
        key = [replicate, seed, *(int(value * 2**31) for value in params.values())]
        return bowl(params) + sd * np.random.default_rng(key).standard_normal()

    return train


def sampler_loops(replicates: int) -> Iterator[str]:
    """Yield the regret after 240 trainings of a real TPE loop."""
    plans = [
        ("vanilla, 240 trials of one seed", 5.85e-4, 1, 240, 0),
        ("vanilla, 24 trials of ten seeds", 5.85e-4, 10, 24, 0),
        ("calibrated, 240 trials of one seed", 4e-4, 1, 240, 0),
        ("calibrated, 80 trials of two seeds, finals 75", 4e-4, 2, 80, 75),
    ]
    for name, sd, n_base, trials, budget in plans:
        regrets = [_sampler_loop(sd, n_base, trials, budget, seed) for seed in range(replicates)]
        error = np.std(regrets, ddof=1) / np.sqrt(replicates)
        yield f"| {name} | {np.mean(regrets) / UNIT:.2f} ± {error / UNIT:.2f} |"


def _sampler_loop(sd: float, n_base: int, trials: int, budget: int, seed: int) -> float:
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed), pruner=SeedRacePruner(trials)
    )
    train = bowl_training(sd, seed)
    startup = n_base if budget == 0 else 3
    objective = SeedObjective(train, seeds=SeedList(20), n_base=n_base, n_startup_seeds=startup)
    study.optimize(objective, n_trials=trials)
    if budget:
        finals(study, train, budget=budget)
    chosen = study.best_params if n_base == 1 else select_best(study).trial.params
    return bowl(chosen) - LOW


def sections(replicates: int, loops: int) -> dict[str, Iterator[str]]:
    """Return the lines below each heading; nothing is simulated before they are asked for."""
    found = {
        f"Scenario {scenario!r}, rho = {rho}": _scenario(scenario, replicates, rho)
        for scenario in SCENARIOS
        for rho in ((0.0, 0.5) if scenario == "search" else (0.0,))
    }
    loop = f"TPE on a five-dimensional bowl, 240 trainings, {loops} replicates"
    found[loop] = chain(["", "| plan | regret |", "|---|---|"], sampler_loops(loops))
    race = f"False eliminations among {CONFIGS} equal configurations, of {replicates}"
    found[race] = _validity(replicates)
    return found


def _scenario(scenario: str, replicates: int, rho: float) -> Iterator[str]:
    yield (
        "\n| rule | metric | trainings | P(regret <= 1e-4) | regret "
        "| bias of the claimed value | bias of 5 fresh seeds | P(best dropped) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    yield from compare_rules(scenario, replicates, rho)


def _validity(replicates: int) -> Iterator[str]:
    yield (
        "\nOne configuration, fixed beforehand, is looked at after each of 20 seeds, as the 5th, "
        "30th or 60th to arrive; its standard deviation is a multiple of the others'. A share rho "
        "of the variance is an effect of the seed that each configuration meets with a slope of "
        "its own, uniform in [0.5, 1.5]: with a common slope it would cancel from the paired "
        f"differences. At alpha = 0.05 at most {0.05 * replicates:.0f} are expected, at most "
        f"{_limit(replicates)} allowed for chance.\n"
    )
    yield "| variance | noise | rho | sd multiple | 5th | 30th | 60th |"
    yield "|---|---|---|---|---|---|---|"
    yield from validity_rows(replicates)


def _limit(replicates: int) -> int:
    """Return the 99% point of the count at a true rate of 0.05."""
    return int(stats.binom.ppf(0.99, replicates, 0.05))


def _introduction(replicates: int) -> Iterator[str]:
    yield "# Seed race: simulations\n"
    yield (
        "Written by `python benchmarks/seed_race.py`; the model is described there. `--only` "
        "writes single sections anew, so sections may come from different runs.\n"
    )
    yield (
        f"{CONFIGS} configurations, {replicates} replicates. Regret and biases in 1e-4, ± one "
        "standard error; negative bias = the claim is too good."
    )


def written_sections(path: Path) -> dict[str, str]:
    """Return what the file holds below each heading."""
    blocks = path.read_text().split("\n## ")[1:] if path.exists() else []
    return dict(block.split("\n", 1) for block in blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=600)
    parser.add_argument("--loops", type=int, default=60)
    parser.add_argument("--only", default="", help="write only sections whose heading begins so")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = Path(__file__).with_suffix(".md")
    kept = written_sections(path)
    lines = list(_introduction(arguments.replicates))
    for title, content in sections(arguments.replicates, arguments.loops).items():
        again = title.startswith(arguments.only)
        lines += [f"\n## {title}", "\n".join(content) if again else kept[title].rstrip()]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
