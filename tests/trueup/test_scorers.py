from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes the next import work
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    StratifiedKFold,
    cross_val_score,
)

from trueup import InSample, calibrated_log_loss, evaluate
from trueup.errors import InvalidInputError, TrueupWarning
from trueup.scorers import SCORERS, calibrated_scorer

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    return X, (X[:, 0] + rng.normal(size=240) > 0).astype(int)


def test_scores_are_minus_the_calibrated_metric_of_each_fold(rows):
    X, y = rows
    scores = cross_val_score(LogisticRegression(), X, y, cv=FOLDS, scoring=calibrated_scorer())
    for score, (train, test) in zip(scores, FOLDS.split(X, y), strict=True):
        proba = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
        assert score == -calibrated_log_loss(y[test], proba)


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_ranks_the_better_model_higher(rows, name):
    X, y = rows
    model = {
        "neg_calibrated_mean_squared_error": LinearRegression(),
        "neg_calibrated_poisson_deviance": PoissonRegressor(),
    }.get(name, LogisticRegression())
    good = cross_val_score(model, X[:, [0]], y, cv=FOLDS, scoring=SCORERS[name])
    bad = cross_val_score(model, X[:, [1]], y, cv=FOLDS, scoring=SCORERS[name])
    assert bad.mean() < good.mean() < 0.0


def test_a_grid_search_takes_a_scorer_in_several_processes(rows):
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-5, 1.0]}, scoring=calibrated_scorer(), cv=FOLDS, n_jobs=2
    )
    assert search.fit(*rows).best_params_ == {"C": 1.0}


def test_named_classes_several_classes_split_and_weights(rows):
    X, y = rows
    names = np.array(["a", "b", "c"])[y + (X[:, 1] > 0)]
    model = LogisticRegression().fit(X, names)
    weight = np.random.default_rng(1).integers(1, 4, 240)
    score = calibrated_scorer(split=InSample(), labels=["a", "b", "c"])
    expected = evaluate(
        names,
        model.predict_proba(X),
        split=InSample(),
        labels=["a", "b", "c"],
        sample_weight=weight,
    )
    assert score(model, X, names, sample_weight=weight) == -expected.calibrated
    two = np.array(["late", "on time"])[y]
    assert calibrated_scorer()(LogisticRegression().fit(X, two), X, two) < 0.0


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="loss must be one of"):
        calibrated_scorer("roc_auc")


def test_a_halving_search_scores_its_first_rung_and_says_how():
    x, y = make_classification(300, random_state=0)
    search = HalvingRandomSearchCV(
        LogisticRegression(),
        {"C": np.logspace(-2, 2, 12)},
        scoring=calibrated_scorer(),
        random_state=0,
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        search.fit(x, y)
    assert search.n_resources_[0] == 20
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    ours = [str(one.message) for one in told if issubclass(one.category, TrueupWarning)]
    assert any("raise min_resources" in message for message in ours)


def test_rows_too_few_for_a_bias_are_scored_without():
    x, y = np.array([[0.1], [0.9], [0.4], [0.6]]), np.array([0, 1, 1, 1])
    model = LogisticRegression().fit(x, y)
    with pytest.warns(TrueupWarning, match="a test set of 4 rows is too small to fit a bias"):
        score = calibrated_scorer()(model, x, y, sample_weight=[1.0, 2.0, 1.0, 1.0])
    expected = log_loss(y, model.predict_proba(x), sample_weight=[1.0, 2.0, 1.0, 1.0])
    assert score == pytest.approx(-expected)
