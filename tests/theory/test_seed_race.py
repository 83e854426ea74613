"""What the seed race promises, by seeded simulation; full size in ``benchmarks/seed_race.py``."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from trueup.decide.e_process import log_evidence_known_variance, log_evidence_student
from trueup.decide.race import RaceRule, seed_noise

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ALPHA = 0.05


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("seed_race")
    sys.path.remove(str(BENCHMARKS))


def limit(replicates):
    """Counts above this have a probability below 1% at a true rate of alpha."""
    return int(stats.binom.ppf(0.99, replicates, ALPHA))


@pytest.mark.parametrize("noise", ["normal", "t5", "skewed"])
@pytest.mark.parametrize("sd_factor", [1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("variance", ["moderated", "own"])
def test_a_configuration_fixed_beforehand_is_seldom_eliminated(bench, noise, sd_factor, variance):
    count = bench.false_eliminations(
        noise, 0.5, sd_factor, position=59, replicates=300, variance=variance
    )
    assert count <= limit(300)


def test_the_pool_alone_would_break_the_promise(bench):
    # The negative control: without its own variance a noisy configuration is eliminated too often.
    rng = np.random.default_rng(0)
    values = rng.standard_normal((300, 60, 20))
    values[:, 59] *= 5.0
    n_seeds = np.full((300, 60), 20)
    out = np.zeros(300, dtype=bool)
    rule = RaceRule(60)
    for done in range(2, 21):
        n_seeds[:, 59] = done
        noise = seed_noise(values, n_seeds)
        pooled = replace(noise, own_dof=np.zeros_like(noise.own_dof))
        out |= rule.log_evidence(values, n_seeds, 59, pooled).max(1) >= -np.log(ALPHA)
    assert out.sum() > 2 * limit(300)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_both_e_processes_keep_their_bound_at_any_time(correlation):
    rng = np.random.default_rng(1)
    replicates, looks = 4000, 100
    draws = rng.standard_normal((replicates, looks))
    # Serially independent differences of a pair whose results are correlated over seeds.
    differences = draws * np.sqrt(2.0 * (1.0 - correlation))
    n = np.arange(1, looks + 1)
    total, squares = differences.cumsum(1), (differences**2).cumsum(1)
    known = log_evidence_known_variance(total / np.sqrt(2.0 * (1.0 - correlation)), n)
    student = log_evidence_student(total, squares, n)
    for evidence in (known, student):
        ever = (evidence >= -np.log(ALPHA)).any(1).sum()
        assert ever <= stats.binom.ppf(0.99, replicates, ALPHA)
        assert ever > 0.3 * ALPHA * replicates  # not vacuous


def test_an_open_race_keeps_its_bound():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((300, 40, 12))
    n_seeds = np.full((300, 40), 12)
    rule, out = RaceRule(None), np.zeros(300, dtype=bool)
    for done in range(1, 13):
        n_seeds[:, 39] = done
        out |= rule.log_evidence(values, n_seeds, 39).max(1) >= -np.log(ALPHA)
    assert out.sum() <= limit(300)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["search", "uniform", "bell"])
def test_the_race_equals_ten_fixed_seeds_for_a_third_of_the_trainings(bench, scenario):
    replicates = 200
    mean, results = bench.draw(np.random.default_rng(3), scenario, replicates)
    rows, best = np.arange(replicates), mean.min(1)
    values = results["calibrated"]
    raced, fixed = bench.race(2, 75)(values), bench.fixed_seeds(10)(values)
    regret = [mean[rows, choice.selected] - best for choice in (raced, fixed)]
    gap = regret[0] - regret[1]
    error = gap.std(ddof=1) / np.sqrt(replicates)
    assert raced.trainings.max() <= 0.36 * 600
    assert gap.mean() <= 2.0 * error
    assert np.mean(regret[0] <= 1e-4) >= np.mean(regret[1] <= 1e-4) - 2.0 * np.sqrt(
        0.25 / replicates
    )


@pytest.mark.slow
def test_fresh_seeds_are_unbiased_where_the_claim_is_not(bench):
    replicates = 300
    mean, results = bench.draw(np.random.default_rng(4), "search", replicates)
    rows, values = np.arange(replicates), results["calibrated"]
    choice = bench.race(2, 75)(values)
    truth = mean[rows, choice.selected]
    fresh = values[rows, choice.selected, 20:].mean(1) - truth
    claim = choice.claimed - truth
    error = fresh.std(ddof=1) / np.sqrt(replicates)
    assert abs(fresh.mean()) <= 3.0 * error
    assert abs(fresh.mean()) <= 0.3e-4 + 2.0 * error
    assert claim.mean() < -4.0 * claim.std(ddof=1) / np.sqrt(replicates)


def test_peers_agree_with_optuna(bench):
    optuna = importlib.import_module("optuna")
    rules = importlib.import_module("seed_race_rules")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table = np.random.default_rng(5).normal(size=(15, 6)) + np.linspace(1.5, 0.0, 15)[:, None]

    def run(pruner, as_mean):
        def objective(trial):
            row = table[trial.number]
            for step in range(6):
                mean = float(row[: step + 1].mean())
                trial.report(mean if as_mean else float(row[step]), step)
                if trial.should_prune():
                    if as_mean:
                        raise optuna.TrialPruned
                    break
            return mean

        study = optuna.create_study(pruner=pruner, sampler=optuna.samplers.RandomSampler())
        study.optimize(objective, n_trials=15)
        used = sum(len(trial.intermediate_values) for trial in study.trials)
        return study.best_trial.number, study.best_value, used

    def ours(rule):
        choice = rule(table[None])
        return int(choice.selected[0]), float(choice.claimed[0]), int(choice.trainings[0])

    median = run(optuna.pruners.MedianPruner(n_startup_trials=5), as_mean=True)
    assert ours(rules.median_pruner(6)) == pytest.approx(median)
    wilcoxon = _wilcoxon(optuna)
    assert ours(rules.wilcoxon_pruner(6)) == pytest.approx(run(wilcoxon, as_mean=False))


def _wilcoxon(optuna):
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        return optuna.pruners.WilcoxonPruner(p_threshold=0.1)
