"""Weights of which a few decide: what is said, and what a test then promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

from trueup import bias_cost_interval, bias_test, evaluate
from trueup.errors import TrueupWarning
from trueup.evaluation.thin_rows import effective_rows

RNG = np.random.default_rng(0)
MARGIN = RNG.normal(-0.5, 1.0, 30_000)
LABEL = (RNG.random(30_000) < expit(MARGIN)).astype(int)


def heavy(n, seed=0):
    return 1.0 + np.random.default_rng(seed).pareto(0.8, n)


@pytest.mark.parametrize("n", [500, 30_000])  # by rows, and by a summary
def test_few_effective_rows_are_said(n):
    weight = np.ones(n)
    weight[:3] = 1e8
    with pytest.warns(TrueupWarning, match=rf"leave 3\S* effective rows of {n}"):
        evaluate(LABEL[:n], expit(MARGIN[:n]), sample_weight=weight)


@pytest.mark.parametrize("weight", [np.ones(900), RNG.uniform(0.2, 2.0, 900), np.arange(900) % 3])
def test_ordinary_weights_are_not_spoken_of(weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrueupWarning)
        evaluate(LABEL[:900], expit(MARGIN[:900]), sample_weight=weight)


def test_the_test_counts_effective_rows():
    with pytest.warns(TrueupWarning, match="effective rows"):
        result = bias_test(LABEL[:2000], expit(MARGIN[:2000]), sample_weight=heavy(2000))
    assert result.n == 2000
    assert result.n_effective == pytest.approx(effective_rows(heavy(2000)))
    assert bias_test(LABEL[:2000], expit(MARGIN[:2000])).n_effective == 2000.0


def test_one_row_with_all_the_weight_proves_nothing():
    weight = np.r_[1e12, np.ones(199)]
    with pytest.warns(TrueupWarning, match="the heaviest row has 100% of all weight"):
        result = bias_test(LABEL[:200], expit(MARGIN[:200]), sample_weight=weight)
    assert result.p_value > 0.1


def test_the_interval_of_few_effective_rows_is_wider_than_its_bootstrap():
    y, p = LABEL[:1500], expit(MARGIN[:1500] + 0.5)
    with pytest.warns(TrueupWarning, match="effective rows"):
        few = bias_cost_interval(y, p, sample_weight=heavy(1500), n_resamples=200)
    many = bias_cost_interval(y, p, sample_weight=np.ones(1500), n_resamples=200)
    assert few.high - few.low > many.high - many.low


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the weights leave")
def test_a_right_model_is_rarely_rejected_under_heavy_weights():
    rejected = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        margin = rng.normal(-0.5, 1.0, 1000)
        y = (rng.random(1000) < expit(margin)).astype(int)
        rejected.append(bias_test(y, expit(margin), sample_weight=heavy(1000, seed)).p_value < 0.05)
    assert np.mean(rejected) <= 0.10  # a nominal 5%: few rows carry what is asked
