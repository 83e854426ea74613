"""No measure guesses which of two classes is positive."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from trueup.errors import InvalidInputError
from trueup.resampling import generalization_error, nested_resampling
from trueup.resampling.positive import takes_positive

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
NAMES = [("no", "yes"), ("low", "high"), (1, 2), (-1, 1), ("0", "1")]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, (rng.random(300) < 1 / (1 + np.exp(1 - 2 * X[:, 0]))).astype(int)


def value(rows, names=(0, 1), inducer=None, **options):
    X, y = rows
    inducer = LogisticRegression() if inducer is None else inducer
    return generalization_error(inducer, X, np.array(names)[y], FOLDS, **options).value


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("loss", ["average_precision", average_precision_score])
def test_a_positive_class_is_named_or_refused(rows, names, loss):
    with pytest.raises(InvalidInputError, match=r"y must be 0 and 1.*got .* and .*labels="):
        value(rows, names, loss=loss)
    expected = value(rows, loss="average_precision")
    assert value(rows, names, loss=loss, labels=names) == pytest.approx(expected)
    turned = value((rows[0], 1 - rows[1]), loss="average_precision")
    assert value(rows, names, loss=loss, labels=names[::-1]) == pytest.approx(turned)


@pytest.mark.parametrize("names", [(False, True), (0.0, 1.0)])
def test_zero_and_one_need_no_name(rows, names):
    assert value(rows, names, loss="average_precision") == value(rows, loss="average_precision")


def test_decision_values_follow_the_named_class(rows):
    options = {"inducer": LinearSVC(random_state=0), "loss": "average_precision"}
    turned = value((rows[0], 1 - rows[1]), **options)
    got = value(rows, ("no", "yes"), labels=["yes", "no"], **options)
    assert got == pytest.approx(turned, abs=1e-3)  # the solver isn't symmetric to the last digit


@pytest.mark.parametrize("loss", ["log_loss", "brier_score", "roc_auc"])
def test_symmetric_measures_of_an_estimator_take_any_names_in_any_order(rows, loss):
    plain = value(rows, loss=loss)
    assert value(rows, ("low", "high"), loss=loss) == pytest.approx(plain, rel=1e-6)
    named = value(rows, ("low", "high"), loss=loss, labels=["low", "high"])
    assert named == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("loss", ["log_loss", "roc_auc"])
def test_one_column_of_a_training_function_needs_the_positive_class(rows, loss):
    def induce(X, y):
        model = LogisticRegression().fit(X, y == "high")
        return lambda X: model.predict_proba(X)[:, 1]

    with pytest.raises(InvalidInputError, match=r"labels must name the classes.*'high', 'low'"):
        value(rows, ("low", "high"), induce, loss=loss)
    got = value(rows, ("low", "high"), induce, loss=loss, labels=["low", "high"])
    assert got == pytest.approx(value(rows, loss=loss))


def test_columns_of_several_classes_may_come_in_any_order(rows):
    X, y = rows[0], np.arange(300) % 3
    plain = generalization_error(LogisticRegression(), X, y, FOLDS).value
    for labels in ([2, 0, 1], [0, 1, 2]):
        got = generalization_error(LogisticRegression(), X, y, FOLDS, labels=labels).value
        assert got == pytest.approx(plain, rel=1e-6)


def test_a_tuner_is_judged_by_the_named_class(rows):
    X, y = rows
    y, tuner = np.array(["no", "yes"])[y], GridSearchCV(LogisticRegression(), {"C": [0.1]})
    given = {"outer": FOLDS, "inner": 3, "loss": "average_precision"}
    with pytest.raises(InvalidInputError, match="y must be 0 and 1"):
        nested_resampling(tuner, X, y, **given)
    both = [nested_resampling(tuner, X, y, labels=k, **given).value
            for k in (["no", "yes"], ["yes", "no"])]  # fmt: skip
    assert abs(both[0] - both[1]) > 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["no", "y"]}, "y must be one of .* got yes at index"),
        ({"labels": ["yes", "yes"]}, "labels must name each class of y once"),
        ({"labels": "yes"}, "labels must name each class"),
        ({"labels": ["no", "yes"], "loss": "mean_squared_error"}, "labels must be left out"),
        ({"labels": ["no", "yes", "maybe"], "loss": "roc_auc"}, "y must hold two classes"),
    ],
)
def test_bad_labels_are_named(rows, options, message):
    with pytest.raises(InvalidInputError, match=message):
        value(rows, ("no", "yes"), **options)


def test_a_metric_takes_one_as_positive_unless_it_is_told():
    assert takes_positive(f1_score, {})
    assert takes_positive(partial(f1_score, zero_division=0.0), {})
    assert not takes_positive(partial(f1_score, pos_label="yes"), {})
    assert not takes_positive(f1_score, {"average": "macro"})
    assert not takes_positive(roc_auc_score, {})
    assert not takes_positive(max, {})
