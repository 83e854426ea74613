"""The floor against simulation; coverage of the debiased error; false discoveries among cells."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.theory.monte_carlo import three_errors

from trueup import field_calibration
from trueup.fields.cells import group_rows
from trueup.fields.distribution import mean_absolute_deviation
from trueup.fields.levels import Levels

N, SIZES = 20_000, (2, 10, 200)


@cache
def simulated(rate, varying):
    """Return probabilities, and the errors of labels drawn from them over cells of each size."""
    rng = np.random.default_rng(31)
    p = rng.beta(2.0 * rate, 2.0 * (1.0 - rate), N) if varying else np.full(N, rate)
    starts = [np.arange(0, N, size) for size in SIZES]
    totals = [np.add.reduceat(p, start) for start in starts]
    errors = np.empty((3000 if rate < 0.01 else 200, len(SIZES)))
    for own in errors:
        label = (rng.random(N) < p).astype(float)
        for k, (start, total) in enumerate(zip(starts, totals, strict=True)):
            own[k] = np.abs(np.add.reduceat(label, start) - total).sum() / N
    return p, dict(zip(SIZES, errors.T, strict=True))


@pytest.mark.parametrize("rate", [0.001, 0.2, 0.5])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("varying", [False, True], ids=["equal", "varying"])
def test_floor_is_within_two_percent_of_simulation(rate, size, varying):
    p, errors = simulated(rate, varying)
    levels = Levels(np.arange(N) // size, tuple(map(str, range(N // size))))
    floor = mean_absolute_deviation(group_rows(levels, np.zeros(N), p, None)).sum() / N
    sums = errors[size]
    assert floor == pytest.approx(sums.mean(), rel=0.02)
    assert abs(floor - sums.mean()) < 4.0 * sums.std() / np.sqrt(len(sums)) + 0.003 * floor


def design(size, seed=37, n=4000):
    rng = np.random.default_rng(seed)
    level = np.arange(n) // size
    spread = rng.normal(0.0, 0.3, level.max() + 1)
    right = 1.0 / (1.0 + np.exp(1.4 - spread[level] - rng.normal(0.0, 0.5, n)))
    return level, right


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 100, 500])
@pytest.mark.parametrize("factor", [1.0, 1.2], ids=["perfect", "biased by 20%"])
def test_interval_of_the_debiased_error_covers_the_true_one(size, factor):
    level, right = design(size, n=2000)
    y_proba = np.minimum(factor * right, 0.999)
    gap = np.bincount(level, weights=y_proba - right) / size
    truth, n_runs = np.mean(gap**2), 200
    rng, covered, values = np.random.default_rng(41), 0, []
    for seed in range(n_runs):
        y_true = (rng.random(len(right)) < right).astype(int)
        result = field_calibration(y_true, y_proba, level, random_state=seed)
        covered += result.debiased_low <= truth <= result.debiased_high
        values.append(result.debiased)
    assert covered / n_runs >= 0.90, covered / n_runs
    assert abs(np.mean(values) - truth) < 4.0 * np.std(values) / np.sqrt(n_runs)


@pytest.mark.slow
def test_floor_band_holds_the_error_of_a_perfect_model():
    level, right = design(50)
    rng, n_runs, inside = np.random.default_rng(43), 200, np.zeros(2)
    for seed in range(n_runs):
        y_true = (rng.random(len(right)) < right).astype(int)
        r = field_calibration(y_true, right, level, random_state=seed)
        inside += (
            r.floor_low <= r.ece <= r.floor_high,
            (r.rce_floor_low <= r.rce <= r.rce_floor_high),
        )
    assert (inside / n_runs >= 0.95 - three_errors(0.95, n_runs)).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_false_discoveries_and_selected_intervals_keep_their_rates(weighted):
    level, right = design(100)
    weight = np.random.default_rng(53).uniform(0.3, 2.0, len(right)) if weighted else None
    broken = level % 4 == 0
    y_proba = np.where(broken, np.minimum(0.95, 1.8 * right), right)
    share = np.ones(len(right)) if weight is None else weight
    truth = np.bincount(level, share * (right - y_proba)) / np.bincount(level, share)
    rng, n_runs, false, missed, found = np.random.default_rng(47), 150, [], [], []
    for _ in range(n_runs):
        y_true = (rng.random(len(right)) < right).astype(int)
        cells = field_calibration(y_true, y_proba, level, sample_weight=weight).cells
        selected = cells.q_value <= 0.05
        own = cells.level[selected].astype(int)
        wrong = (cells.low[selected] > truth[own]) | (truth[own] > cells.high[selected])
        false.append(np.mean(own % 4 != 0) if len(own) else 0.0)
        missed.append(wrong.mean() if len(own) else 0.0)
        found.append(np.sum(own % 4 == 0))
    error = 3.0 * np.std(false) / np.sqrt(n_runs)
    assert np.mean(false) <= 0.05 + error
    assert np.mean(missed) <= 0.05 + 3.0 * np.std(missed) / np.sqrt(n_runs)
    assert np.mean(found) > 5.0  # of 10
