"""Which numbers autologging recognises, and how the calls behind them are read."""

from __future__ import annotations

import math

import mlflow
import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, mean_squared_error, root_mean_squared_error

import trueup
from trueup_mlflow.write.items import is_own_key


def own(metrics):
    return {key for key in metrics if is_own_key(key)}


METRICS = {
    "log_loss": (log_loss, "binary", "log_loss", False),
    "brier": (brier_score_loss, "binary", "brier_score", False),
    "mse": (mean_squared_error, "regression", "mean_squared_error", False),
    "rmse": (root_mean_squared_error, "regression", "mean_squared_error", True),
    "root of mse": (
        lambda y, p: float(np.sqrt(mean_squared_error(y, p))),
        "regression",
        "mean_squared_error",
        True,
    ),
    "multiclass log_loss": (log_loss, "multiclass", "log_loss", False),
}


@pytest.mark.parametrize("name", METRICS)
def test_metric_gets_the_calibrated_twin_that_evaluate_computes(client, autologging, request, name):
    function, fixture, loss, root = METRICS[name]
    rows = request.getfixturevalue(fixture)
    with mlflow.start_run() as run:
        mlflow.log_metric(name, function(rows.y, rows.p))
    expected = trueup.evaluate(rows.y, rows.p, loss=loss)
    calibrated = math.sqrt(expected.calibrated) if root else expected.calibrated
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics[f"calibrated_{name}"] == pytest.approx(calibrated, rel=1e-12)
    bias = expected.bias_term
    terms = {"": bias} if isinstance(bias, float) else {f"_{i}": b for i, b in enumerate(bias)}
    for suffix, term in terms.items():
        assert metrics[f"bias_term_{name}{suffix}"] == pytest.approx(term, rel=1e-12)


def test_multiclass_brier_score_is_calibrated_by_the_softmax_shift(client, autologging, multiclass):
    value = brier_score_loss(multiclass.y, multiclass.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("brier", value)
    metrics = client.get_run(run.info.run_id).data.metrics
    bias = trueup.evaluate(multiclass.y, multiclass.p).bias_term
    assert metrics["bias_term_brier_0"] == pytest.approx(bias[0], rel=1e-12)
    assert metrics["calibrated_brier"] < value
    assert metrics["calibrated_brier"] + metrics["bias_cost_brier"] == pytest.approx(value)


def test_named_classes_float32_two_columns_and_weights_are_read(client, autologging, binary):
    names = np.array(["no", "yes"])[binary.y]
    columns = np.column_stack([1 - binary.p, binary.p]).astype(np.float32)
    weight = np.arange(len(names)) % 3 + 1
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(names, columns, sample_weight=weight))
    expected = trueup.evaluate(binary.y, columns[:, 1].astype(float), sample_weight=weight)
    assert client.get_run(run.info.run_id).data.metrics["calibrated_loss"] == pytest.approx(
        expected.calibrated
    )


def test_positive_label_of_the_brier_score_is_read(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("brier", brier_score_loss(binary.y, 1 - binary.p, pos_label=0))
    expected = trueup.evaluate(1 - binary.y, 1 - binary.p, loss="brier_score")
    assert client.get_run(run.info.run_id).data.metrics["calibrated_brier"] == pytest.approx(
        expected.calibrated
    )


def test_saturated_float32_probabilities_keep_their_vanilla_and_gain_a_twin(
    client, autologging, binary
):
    p = binary.p.astype(np.float32)
    p[:5], p[5:10] = 1.0, 0.0
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, p))
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics["calibrated_loss"] + metrics["bias_cost_loss"] == pytest.approx(metrics["loss"])


def test_arrays_changed_after_the_call_do_not_change_the_twin(client, autologging, binary):
    expected = trueup.evaluate(binary.y, binary.p).calibrated
    p = binary.p.copy()
    value = log_loss(binary.y, p)
    p[:] = 0.5
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", value)
    assert client.get_run(run.info.run_id).data.metrics["calibrated_loss"] == pytest.approx(
        expected, rel=1e-12
    )


UNRECOGNISED = {
    "another number": lambda rows: log_loss(rows.y, rows.p) + 0.1,
    "rounded": lambda rows: round(log_loss(rows.y, rows.p), 6),
    "sum over rows": lambda rows: log_loss(rows.y, rows.p, normalize=False),
    "unscaled brier": lambda rows: brier_score_loss(rows.y, rows.p, scale_by_half=False),
    "several outputs": lambda rows: mean_squared_error(
        np.column_stack([rows.y, rows.y]), np.column_stack([rows.p, 1 - rows.p])
    ),
    "a number of few digits": lambda _: mean_squared_error([0.0, 1.0], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", UNRECOGNISED)
def test_number_that_is_not_a_mean_over_rows_gains_nothing(client, autologging, binary, name):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", UNRECOGNISED[name](binary))
    data = client.get_run(run.info.run_id).data
    assert own(data.metrics) == set()
    trueups = [tag for tag in data.tags if tag.startswith("trueup")]
    assert trueups == ["trueup.coverage"]
    assert data.tags["trueup.coverage"].startswith("none of loss: ")
