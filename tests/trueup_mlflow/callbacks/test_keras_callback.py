from __future__ import annotations

import os

import mlflow
import numpy as np
import pytest

import trueup
from trueup.errors import TrueupWarning

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from trueup_mlflow.callbacks.keras import TrueupCallback  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype("float32")
BINARY = (X[:, 0] + RNG.logistic(size=200) > 0).astype(int)
CLASSES = (X[:, :1] * np.arange(3) + RNG.gumbel(size=(200, 3))).argmax(axis=1)
TARGET = (X[:, 0] + RNG.normal(size=200)).astype("float32")


def fit(loss, activation, units, y, callback):
    keras.utils.set_random_seed(0)
    layers = [keras.Input((3,)), keras.layers.Dense(units, activation=activation)]
    model = keras.Sequential(layers)
    model.compile("sgd", loss=loss)
    model.fit(X, y, epochs=2, verbose=0, callbacks=[callback])
    return model.predict(X, verbose=0).astype(float)


CASES = {
    "sigmoid": ("binary_crossentropy", "sigmoid", 1, BINARY, BINARY),
    "logits": (keras.losses.BinaryCrossentropy(from_logits=True), None, 1, BINARY, BINARY),
    "two classes": (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        None,
        2,
        BINARY,
        BINARY,
    ),
    "classes": ("sparse_categorical_crossentropy", "softmax", 3, CLASSES, CLASSES),
    "columns": ("categorical_crossentropy", "softmax", 3, np.eye(3)[CLASSES], CLASSES),
    "squares": ("mse", None, 1, TARGET, TARGET),
}


def evaluation(name, y, predicted):
    if name == "squares":
        return trueup.evaluate(y, predicted[:, 0], loss="mean_squared_error")
    if name == "logits":
        return trueup.evaluate(y, y_logit=predicted[:, 0])
    if name == "two classes":
        return trueup.evaluate(y, y_logit=predicted[:, 1] - predicted[:, 0])
    return trueup.evaluate(y, predicted[:, 0] if name == "sigmoid" else predicted)


@pytest.mark.filterwarnings("ignore::UserWarning:keras", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_each_epoch_is_logged(client, name):
    loss, activation, units, y, labels = CASES[name]
    with mlflow.start_run() as run:
        predicted = fit(loss, activation, units, y, TrueupCallback(X, y))
    key = "val_mean_squared_error" if name == "squares" else "val_log_loss"
    history = client.get_metric_history(run.info.run_id, f"calibrated_{key}")
    assert [point.step for point in history] == [0, 1]
    expected = evaluation(name, labels, predicted)
    assert history[-1].value == pytest.approx(expected.calibrated, rel=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning:keras", "ignore::DeprecationWarning")
def test_loss_that_is_not_known_says_what_to_do_and_training_goes_on(client):
    with mlflow.start_run(), pytest.warns(TrueupWarning, match="loss must be given"):
        fit("mae", None, 1, TARGET, TrueupCallback(X, TARGET))
