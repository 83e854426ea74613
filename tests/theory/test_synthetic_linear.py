"""The fast engine of the synthetic tables gives what ``evaluate`` gives, and its main finding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scripts import script

from trueup import CrossFit, InSample, evaluate


@pytest.fixture(scope="module")
def tables():
    with script("benchmarks/reproduce/synthetic_linear.py") as module:
        yield module


@pytest.mark.parametrize("split", [CrossFit(), InSample()], ids=["five folds", "in sample"])
@pytest.mark.parametrize("key", ["linear", "logistic"])
def test_engine_equals_evaluate(tables, key, split):
    experiment = tables.LINEAR if key == "linear" else tables.LOGISTIC
    scores = tables.linear_scores if key == "linear" else tables.logistic_scores
    models = np.concatenate(experiment.models(2, seed=3))
    X, y = experiment.validation(seed=4)
    found = scores(models, X, y)
    name = tables.CROSS if isinstance(split, CrossFit) else tables.IN_SAMPLE
    for k, model in enumerate(models):
        given = {"y_pred": X @ model, "loss": "mean_squared_error"}
        if key == "logistic":
            given = {"y_logit": X @ model, "loss": "log_loss"}
        evaluation = evaluate(y, split=split, **given)
        assert found[tables.VANILLA][k] == pytest.approx(evaluation.vanilla, rel=1e-11)
        assert found[name][k] == pytest.approx(evaluation.calibrated, rel=1e-11)


def test_algorithm_1_equals_the_papers_formulas(tables):
    models = tables.LINEAR.models(1, seed=3)[0]
    X, y = tables.LINEAR.validation(seed=4)
    residual = y - X @ models[0]
    c = residual[:1000].mean()
    expected = np.mean((residual[1000:] - c) ** 2)
    assert tables.linear_scores(models, X, y)[tables.PAPER][0] == pytest.approx(expected)


@pytest.mark.slow
def test_scoring_all_rows_gains_on_nearly_each_validation_set(tables):
    spread = tables.run(tables.linear_scores, tables.LINEAR, n_rounds=20, n_sets=30)
    gain = spread.accuracy[tables.CROSS] - spread.accuracy[tables.VANILLA]
    assert np.mean(gain > 0) >= 0.95
    assert 0.002 <= gain.mean() <= 0.007
    # The spread over sets dwarfs the standard error over rounds, even of 20 rounds.
    sd_over_sets = spread.accuracy[tables.VANILLA].std(ddof=1)
    assert sd_over_sets > 3 * spread.round_error[tables.VANILLA].mean()
