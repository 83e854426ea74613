from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from trueup.errors import InvalidInputError
from trueup.resampling import Bootstrap, corrected_t_interval


def test_bootstrap_trains_on_n_draws_and_tests_on_the_rows_left_out():
    for train, test in Bootstrap(20, random_state=1).split(np.zeros((50, 2))):
        assert len(train) == 50
        assert sorted(set(train) | set(test)) == list(range(50))
        assert set(train).isdisjoint(test)


def test_bootstrap_leaves_out_the_share_of_rows_that_theory_says():
    n, splits = 200, 200
    left_out = np.mean([len(test) for _, test in Bootstrap(splits, 0).split(np.zeros(n))]) / n
    expected = (1 - 1 / n) ** n
    variance = expected * (1 - expected) / n  # an upper bound: rows left out are correlated < 0
    assert abs(left_out - expected) < 4 * np.sqrt(variance / splits)


def test_bootstrap_is_a_splitter_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.arange(80) % 2
    assert len(cross_val_score(LogisticRegression(), X, y, cv=Bootstrap(3, 0))) == 3
    assert clone(Bootstrap(3, 0), safe=False).get_n_splits(X) == 3


def test_bootstrap_draws_the_same_again_with_a_seed_and_anew_without():
    def draws(splitter):
        return [train.tolist() for train, _ in splitter.split(np.zeros(30))]

    assert draws(Bootstrap(3, 5)) == draws(Bootstrap(3, 5))
    assert draws(Bootstrap(3)) != draws(Bootstrap(3))


def test_bootstrap_of_two_rows_always_leaves_one_out():
    assert all(len(test) == 1 for _, test in Bootstrap(50, 0).split([0, 1]))


def test_corrected_interval_is_student_s_where_the_test_set_is_negligible():
    values = np.random.default_rng(0).normal(size=8)
    low, high = corrected_t_interval(values, n_train=1e15, n_test=1)
    expected = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
    np.testing.assert_allclose((low, high), expected, rtol=1e-9)


def test_corrected_interval_by_its_formula():
    low, high = corrected_t_interval([1.0, 3.0], n_train=4, n_test=1, confidence_level=0.5)
    # variance 2, factor 1/2 + 1/4, and the upper quartile of Student's t with 1 degree is 1.
    np.testing.assert_allclose((low, high), (2 - np.sqrt(1.5), 2 + np.sqrt(1.5)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bootstrap(0), "n_splits must be an integer of at least 1; got 0"),
        (lambda: list(Bootstrap().split([1])), "X must hold at least 2 rows"),
        (lambda: corrected_t_interval([1.0], 2, 1), "fold_values must be at least two"),
        (lambda: corrected_t_interval([1.0, 2.0], 0, 1), "n_train must be positive"),
        (lambda: corrected_t_interval([1.0, 2.0], 1, 0), "n_test must be positive"),
        (
            lambda: corrected_t_interval([1.0, 2.0], 2, 1, confidence_level=0),
            "confidence_level must be in",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, trueup.resampling; print('sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
