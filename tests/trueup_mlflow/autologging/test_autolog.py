"""What autologging adds to a run, and how it is switched on and off."""

from __future__ import annotations

import mlflow
import pytest
import sklearn.metrics
from mlflow import MlflowClient
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import trueup
from trueup import InSample
from trueup_mlflow import autolog, log_evaluation
from trueup_mlflow.write.items import is_own_key


def own(metrics):
    return {key for key in metrics if is_own_key(key)}


def test_run_gains_exactly_these_keys_and_tags(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("val_log_loss", value, step=3)
    data = client.get_run(run.info.run_id).data
    expected = trueup.evaluate(binary.y, binary.p)
    assert data.metrics == {
        "val_log_loss": value,
        "calibrated_val_log_loss": pytest.approx(expected.calibrated, rel=1e-12),
        "bias_term_val_log_loss": pytest.approx(expected.bias_term, rel=1e-12),
        "bias_cost_val_log_loss": pytest.approx(expected.bias_cost, rel=1e-9),
    }
    assert {key: text for key, text in data.tags.items() if key.startswith("trueup")} == {
        "trueup.split": "CrossFit(folds=5, salt=0)",
        "trueup.fingerprint.val_log_loss": expected.fingerprint,
        "trueup.version": trueup.__version__,
        "trueup.coverage": "twins of val_log_loss.",
    }


def test_vanilla_value_is_bit_identical(client, off_at_the_end, binary):
    before = log_loss(binary.y, binary.p)
    autolog()
    after = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", after)
    assert client.get_run(run.info.run_id).data.metrics["loss"].hex() == after.hex() == before.hex()


# MLflow 3.17 calls log_loss with the name of an argument that scikit-learn 1.9 deprecates.
@pytest.mark.filterwarnings("ignore:`y_pred` was renamed:FutureWarning")
@pytest.mark.parametrize("when", ["before", "after"])
def test_autolog_composes_with_that_of_scikit_learn(client, off_at_the_end, binary, when):
    if when == "before":
        autolog()
    mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)
    if when == "after":
        autolog()
    try:
        x = binary.p[:, None]
        with mlflow.start_run() as run:
            model = LogisticRegression(C=0.01).fit(x[:200], binary.y[:200])
            p_val = model.predict_proba(x[200:])
            y_val = binary.y[200:]
            value = sklearn.metrics.log_loss(y_val, p_val)
            mlflow.log_metric("mine", value)
    finally:
        mlflow.sklearn.autolog(disable=True)
    metrics = client.get_run(run.info.run_id).data.metrics
    post_training = {key for key in metrics if key.startswith("log_loss")}
    assert len(post_training) == 1
    calibrated = trueup.evaluate(y_val, p_val).calibrated
    for key in ("mine", *post_training):
        assert metrics[key] == value
        assert metrics[f"calibrated_{key}"] == pytest.approx(calibrated, rel=1e-12)
    assert "training_log_loss" in metrics
    assert not any("training" in key for key in own(metrics))


def test_name_bound_before_autolog_is_watched(client, off_at_the_end, binary):
    bound_early = log_loss
    autolog()
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", bound_early(binary.y, binary.p))
    assert "calibrated_loss" in client.get_run(run.info.run_id).data.metrics


def test_explicit_logging_is_not_doubled(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("log_loss", log_loss(binary.y, binary.p))
        log_evaluation(binary.y, binary.p)
    assert len(client.get_metric_history(run.info.run_id, "calibrated_log_loss")) == 1


def test_options_choose_split_and_excluded_keys(client, off_at_the_end, binary):
    autolog(split=InSample(), exclude=("secret",))
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metrics({"training_loss": value, "secret_loss": value})
    data = client.get_run(run.info.run_id).data
    expected = trueup.evaluate(binary.y, binary.p, split=InSample()).calibrated
    assert data.metrics["calibrated_training_loss"] == pytest.approx(expected, rel=1e-12)
    assert data.tags["trueup.split"] == "InSample()"
    assert "calibrated_secret_loss" not in data.metrics


def test_disable_takes_every_hook_off(client, binary):
    originals = MlflowClient.log_metric, MlflowClient.log_batch
    cell = log_loss.__closure__[log_loss.__code__.co_freevars.index("func")]
    inner = cell.cell_contents
    autolog()
    autolog()
    assert cell.cell_contents is not inner
    autolog(disable=True)
    autolog(disable=True)
    assert (MlflowClient.log_metric, MlflowClient.log_batch) == originals
    assert cell.cell_contents is inner
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
    assert own(client.get_run(run.info.run_id).data.metrics) == set()
