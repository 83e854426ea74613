"""A model with its calibrator: what it passes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from trueup.calibrators import (
    CalibratedModel,
    FieldOffsetCalibrator,
    Guarded,
    IsotonicCalibrator,
    ShiftCalibrator,
)
from trueup.errors import InvalidInputError, NotFittedError


@pytest.fixture
def shop():
    """Train, then sites drift: development and test rows have a bias per site."""
    rng = np.random.default_rng(0)
    n = 12_000
    frame = pd.DataFrame({"age": rng.normal(size=n), "site": rng.choice(["a", "b", "c"], n)})
    bias = frame["site"].map({"a": -1.0, "b": 0.0, "c": 1.0}) * (frame.index >= 4000)
    y = np.where(rng.random(n) < expit(frame["age"] + bias), "buy", "leave")
    model = LogisticRegression().fit(frame[["age"]][:4000].to_numpy(), y[:4000])
    return Shop(model), frame[4000:8000], y[4000:8000], frame[8000:], y[8000:]


class Shop:
    """Reads the age alone."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X):
        return self.model.predict_proba(X[["age"]].to_numpy())


def test_fields_are_taken_from_the_columns_of_x(shop):
    model, dev, y_dev, test, y_test = shop
    calibrated = CalibratedModel(model, FieldOffsetCalibrator(), fields=["site"]).fit(dev, y_dev)
    assert calibrated.decision_.kept
    for site in "abc":
        here = (test["site"] == site).to_numpy()
        p = calibrated.predict_proba(test[here])[:, 1]
        assert p.mean() == pytest.approx((y_test[here] == "leave").mean(), abs=0.05)


def test_predicts_labels(shop):
    model, dev, y_dev, test, y_test = shop
    calibrated = CalibratedModel(model, ShiftCalibrator()).fit(dev, y_dev)
    assert set(calibrated.predict(test)) == {"buy", "leave"}
    assert 0.6 < calibrated.score(test, y_test) < 0.9


def test_guard_is_on_by_default_and_can_be_left_out(shop):
    model, dev, y_dev, _, _ = shop
    guarded = CalibratedModel(model, IsotonicCalibrator()).fit(dev, y_dev)
    bare = CalibratedModel(model, IsotonicCalibrator(), guard=False).fit(dev, y_dev)
    own = CalibratedModel(model, Guarded(IsotonicCalibrator(), check_fraction=0.3)).fit(dev, y_dev)
    assert isinstance(guarded.calibrator_, Guarded)
    assert isinstance(bare.calibrator_, IsotonicCalibrator)
    assert bare.decision_ is None
    assert own.decision_.n_check == 1200


def test_a_function_is_a_model():
    p = np.linspace(0.01, 0.99, 400)
    y = np.arange(400) % 2
    calibrated = CalibratedModel(lambda X: X[:, 0], ShiftCalibrator(), guard=False)
    assert calibrated.fit(p[:, None], y).predict_proba(p[:, None]).shape == (400, 2)


def test_clone_keeps_the_parameters(shop):
    copy = clone(CalibratedModel(LogisticRegression(), ShiftCalibrator(), fields=("site",)))
    assert copy.fields == ("site",)


def test_times_reach_the_guard(shop):
    model, dev, y_dev, _, _ = shop
    times = np.repeat([0, 1], [1000, 3000])
    calibrated = CalibratedModel(model, ShiftCalibrator()).fit(dev, y_dev, times=times)
    assert calibrated.decision_.n_fit == 1000


def test_times_without_a_guard_are_refused(shop):
    model, dev, y_dev, _, _ = shop
    with pytest.raises(InvalidInputError, match="times must be left out with guard=False"):
        CalibratedModel(model, ShiftCalibrator(), guard=False).fit(dev, y_dev, times=y_dev)


def test_other_labels_than_the_models_are_refused(shop):
    model, dev, y_dev, _, _ = shop
    with pytest.raises(InvalidInputError, match="y must hold the labels of the model"):
        CalibratedModel(model, ShiftCalibrator()).fit(dev, y_dev == "buy")


def test_a_model_without_probabilities_is_refused():
    with pytest.raises(InvalidInputError, match="model must have predict_proba or be callable"):
        CalibratedModel(object(), ShiftCalibrator()).fit(np.zeros((2, 1)), [0, 1])


def test_predicting_before_fitting_is_an_error(shop):
    with pytest.raises(NotFittedError, match="CalibratedModel must be fitted"):
        CalibratedModel(shop[0], ShiftCalibrator()).predict(shop[1])
