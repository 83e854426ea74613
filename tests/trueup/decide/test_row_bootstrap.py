from __future__ import annotations

import numpy as np
import pytest

from trueup.comparison import compare
from trueup.errors import InvalidInputError

N_ROWS, SEEDS = 400, range(8)


def row_losses(shift=0.0, seed_noise=0.02, random_state=0):
    rng = np.random.default_rng(random_state)
    hard = np.random.default_rng(9).exponential(1.0, N_ROWS)
    tilt = np.random.default_rng(8 + random_state).normal(0.0, 0.3, N_ROWS)
    return {s: hard + shift + tilt + rng.normal(0, seed_noise) for s in SEEDS}


def means(rows):
    return {seed: losses.mean() for seed, losses in rows.items()}


def test_rows_that_hit_both_arms_alike_cancel():
    first, second = row_losses(random_state=1), row_losses(shift=0.1, random_state=1)
    decision = compare(means(first), means(second), rows=(first, second))
    assert decision.rows.standard_error_rows == pytest.approx(0.0, abs=1e-12)
    assert decision.rows.difference == pytest.approx(decision.difference)
    assert decision.rows.high == pytest.approx(-0.1)


def test_row_error_equals_the_formula_when_the_seeds_agree():
    first, second = row_losses(0.0, 0.0, 1), row_losses(0.1, 0.0, 2)
    rows = compare(means(first), means(second), rows=(first, second)).rows
    per_row = first[0] - second[0]
    error = per_row.std(ddof=1) / np.sqrt(N_ROWS)
    assert rows.standard_error_rows == pytest.approx(error)
    # 2,000 resamples know an end to about 6% of the error
    assert rows.low == pytest.approx(per_row.mean() - 1.96 * error, abs=0.2 * error)
    assert rows.high == pytest.approx(per_row.mean() + 1.96 * error, abs=0.2 * error)


def test_seeds_and_rows_both_widen_the_interval():
    widths = []
    for noise in (0.0, 0.1):
        first, second = row_losses(0.0, noise, 1), row_losses(0.0, noise, 2)
        rows = compare(means(first), means(second), rows=(first, second)).rows
        widths.append(rows.high - rows.low)
    assert widths[1] > 1.5 * widths[0]


def test_result_is_repeatable_and_said():
    first, second = row_losses(random_state=1), row_losses(random_state=2)
    decision = compare(means(first), means(second), rows=(first, second))
    assert decision == compare(means(first), means(second), rows=(first, second))
    assert "over seeds and rows" in str(decision)


def test_missing_run_is_refused():
    first, second = row_losses(random_state=1), row_losses(random_state=2)
    del second[3]
    with pytest.raises(InvalidInputError, match="got none at baseline seed 3"):
        compare(means(first), means(row_losses()), rows=(first, second))


def test_other_rows_are_refused():
    first, second = row_losses(random_state=1), row_losses(random_state=2)
    second[3] = second[3][:-1]
    with pytest.raises(InvalidInputError, match=r"same rows for each run; got lengths \[399"):
        compare(means(first), means(row_losses()), rows=(first, second))
