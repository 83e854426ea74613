"""Nested resampling: what a tuner sees, what it selects, and what comes out."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
)

from trueup.errors import InvalidInputError
from trueup.resampling import generalization_error, nested_resampling

OUTER = StratifiedKFold(4, shuffle=True, random_state=0)
INNER = StratifiedKFold(3, shuffle=True, random_state=1)
GRID = {"C": [0.01, 1.0]}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, (X[:, 0] + rng.normal(size=200) > 0).astype(int)


def test_a_grid_search_gives_what_scikit_learn_s_recipe_gives(rows):
    tuner = GridSearchCV(LogisticRegression(), GRID, scoring="neg_log_loss")
    estimate = nested_resampling(tuner, *rows, outer=OUTER, inner=INNER)
    by_hand = cross_val_score(
        GridSearchCV(LogisticRegression(), GRID, scoring="neg_log_loss", cv=INNER),
        *rows,
        cv=OUTER,
        scoring="neg_log_loss",
    )
    np.testing.assert_allclose([fold.vanilla for fold in estimate.folds], -by_hand)
    assert all(fold.selected["C"] in GRID["C"] for fold in estimate.folds)
    assert estimate.n_train == 150.0
    assert estimate.low < estimate.value < estimate.high
    assert tuner.cv is None


def test_a_function_is_a_tuner(rows):
    def tuner(X, y, inner):
        candidates = [LogisticRegression(C=C) for C in GRID["C"]]
        errors = [generalization_error(each, X, y, inner).vanilla for each in candidates]
        return candidates[int(np.argmin(errors))]

    by_function = nested_resampling(tuner, *rows, outer=OUTER, inner=INNER)
    search = GridSearchCV(LogisticRegression(), GRID, scoring="neg_log_loss")
    by_search = nested_resampling(search, *rows, outer=OUTER, inner=INNER)
    assert by_function.value == pytest.approx(by_search.value)


class Spy(BaseEstimator):
    """Writes down the ids, in the first column, of the rows that it is trained on or shown."""

    seen: ClassVar[list[set[int]]] = []

    def __init__(self, a=0):
        self.a = a

    def fit(self, X, y):
        self.seen[-1] |= set(X[:, 0].astype(int))
        return self

    def predict(self, X):
        self.seen[-1] |= set(X[:, 0].astype(int))
        return np.full(len(X), float(self.a))


def test_the_tuner_never_sees_a_row_of_the_outer_test_set():
    ids = np.arange(60)[:, None]
    y = np.random.default_rng(0).normal(size=60)
    outer = KFold(4, shuffle=True, random_state=0)
    Spy.seen = []

    def tuner(X, y, inner):
        Spy.seen.append(set())
        return GridSearchCV(Spy(), {"a": [0, 1]}, cv=inner, scoring="r2").fit(X, y).best_estimator_

    def forget(X, y, inner):
        chosen = tuner(X, y, inner)
        Spy.seen.append(set())  # what follows is training and prediction on the outer split
        return chosen

    nested_resampling(forget, ids, y, outer=outer, inner=3, loss="mean_squared_error")
    for tuned_on, (train, _) in zip(Spy.seen[::2], outer.split(ids), strict=True):
        assert tuned_on == set(train)


def noise_without_signal(seed):
    """Draw many features without any relation to the labels: what is found can't be real."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(80, 400)), np.arange(80) % 2


class OneColumn(LogisticRegression):
    """Looks at one column only, so that choosing the column is all there is to learn."""

    def __init__(self, column=0):
        super().__init__()
        self.column = column

    def fit(self, X, y):
        return super().fit(X[:, [self.column]], y)

    def predict_proba(self, X):
        return super().predict_proba(X[:, [self.column]])


AUC = {"loss": "roc_auc", "calibrated": False}


def best_column(X, y, inner):
    """Select one of the three columns that differ most between the classes."""
    effect = np.abs(X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    candidates = [OneColumn(column) for column in np.argsort(effect)[-3:]]
    errors = [generalization_error(each, X, y, inner, **AUC).value for each in candidates]
    return candidates[int(np.argmax(errors))]


def test_outer_folds_don_t_leak_where_leaking_would_show():
    leaking, nested = [], []
    for seed in range(8):
        X, y = noise_without_signal(seed)
        honest = nested_resampling(best_column, X, y, outer=OUTER, inner=INNER, loss="roc_auc")
        nested.append(honest.value)
        chosen = best_column(X, y, INNER)  # the mistake: selected on all rows, then validated
        leaking.append(generalization_error(chosen, X, y, OUTER, **AUC).value)
    assert np.mean(leaking) > 0.65
    assert abs(np.mean(nested) - 0.5) < 3 * np.std(nested, ddof=1) / np.sqrt(len(nested))


def test_groups_reach_the_inner_splits(rows):
    X, y = rows
    groups = np.arange(200) // 10
    tuner = GridSearchCV(LogisticRegression(), GRID, scoring="neg_log_loss")
    estimate = nested_resampling(
        tuner, X, y, outer=GroupKFold(4), inner=GroupKFold(3), groups=groups
    )
    assert estimate.interval is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tuner": 3}, "tuner must be a self-tuning estimator or a function"),
        ({"tuner": Ridge()}, "tuner must have a parameter resampling or cv"),
        ({"inner": [([0], [1])]}, "inner must be a splitter or a number of folds"),
        ({"outer": "cv"}, "resampling must be a splitter"),
    ],
)
def test_bad_input_is_named(rows, change, message):
    arguments = {"tuner": GridSearchCV(LogisticRegression(), GRID), "outer": 3, "inner": 3}
    changed = {**arguments, **change}
    with pytest.raises(InvalidInputError, match=message):
        nested_resampling(changed.pop("tuner"), *rows, **changed)
