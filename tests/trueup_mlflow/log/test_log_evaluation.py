from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import mlflow
import numpy as np
import pytest

import trueup
from trueup.errors import InvalidInputError, TrueupWarning
from trueup.fields.levels import LIMIT_VARIABLE
from trueup.losses import LogLoss
from trueup_mlflow import log_evaluation

STANDARD_TAGS = {"mlflow.user", "mlflow.source.name", "mlflow.source.type", "mlflow.runName"}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def gained_tags(run):
    return {key for key in run.data.tags if key not in STANDARD_TAGS | {"mlflow.source.git.commit"}}


def artifacts(client, run_id, folder=None):
    found = client.list_artifacts(run_id, folder)
    return [
        path
        for entry in found
        for path in (artifacts(client, run_id, entry.path) if entry.is_dir else [entry.path])
    ]


def test_run_gains_exactly_these_metrics_tags_and_artifacts(client):
    y, p = rows()
    with mlflow.start_run() as active:
        evaluation = log_evaluation(y, p, prefix="val_", fields={"site": np.arange(400) % 3})
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {
        "val_log_loss": evaluation.vanilla,
        "calibrated_val_log_loss": evaluation.calibrated,
        "bias_term_val_log_loss": evaluation.bias_term,
        "bias_cost_val_log_loss": evaluation.bias_cost,
        "val_field_ece_site": evaluation.fields["site"].ece,
        "val_field_rce_site": evaluation.fields["site"].rce,
        "val_field_floor_site": evaluation.fields["site"].floor,
    }
    assert {tag: run.data.tags[tag] for tag in gained_tags(run)} == {
        "trueup.split": "CrossFit(folds=5, salt=0)",
        "trueup.fingerprint.val_log_loss": evaluation.fingerprint,
        "trueup.version": trueup.__version__,
    }
    assert artifacts(client, run.info.run_id) == [
        "trueup/fields_val_log_loss.parquet",
        "trueup/fields_val_log_loss.png",
    ]


def test_no_fields_no_artifacts(client):
    with mlflow.start_run() as active:
        log_evaluation(*rows())
    assert artifacts(client, active.info.run_id) == []


def test_figures_are_logged_when_asked(client):
    y, p = rows()
    with mlflow.start_run() as active:
        log_evaluation(y, p, figures=True)
        log_evaluation(y.astype(float), p, loss="mean_squared_error", figures=True)
    assert artifacts(client, active.info.run_id) == ["trueup/reliability_log_loss.png"]


def test_result_equals_evaluate_bit_for_bit(client):
    y, p = rows()
    options = {"split": trueup.HoldOut(0.2, salt=3), "row_id": np.arange(400) * 7}
    with mlflow.start_run() as active:
        assert log_evaluation(y, p, **options) == trueup.evaluate(y, p, **options)
    metrics = client.get_run(active.info.run_id).data.metrics
    assert metrics["calibrated_log_loss"] == trueup.evaluate(y, p, **options).calibrated


def test_one_request_writes_everything(server):
    y, p = rows()
    with mlflow.start_run() as active:
        server.requests.clear()
        log_evaluation(y, p)
        assert server.paths() == ["runs/log-batch"]
        log_evaluation(y, p, run_id=active.info.run_id, prefix="again_")
        assert server.paths() == ["runs/log-batch", "runs/log-batch"]
    metrics = mlflow.get_run(active.info.run_id).data.metrics
    assert {"calibrated_log_loss", "calibrated_again_log_loss"} <= metrics.keys()


def test_a_run_is_started_where_none_is_active(client):
    log_evaluation(*rows())
    assert "calibrated_log_loss" in client.get_run(mlflow.active_run().info.run_id).data.metrics


def test_step_and_finished_run(client):
    y, p = rows()
    with mlflow.start_run() as active:
        pass
    for step in (0, 5):
        log_evaluation(y, p, run_id=active.info.run_id, step=step, client=client)
    history = client.get_metric_history(active.info.run_id, "calibrated_log_loss")
    assert [point.step for point in history] == [0, 5]


def test_metrics_belong_to_the_model_and_the_data_set(client):
    y, p = rows()
    dataset = mlflow.data.from_numpy(p, name="validation")
    with mlflow.start_run() as active:
        model = mlflow.initialize_logged_model(name="m")
        log_evaluation(y, p, model_id=model.model_id, dataset=dataset, step=2)
    logged = {metric.key: metric for metric in client.get_logged_model(model.model_id).metrics}
    assert set(logged) == set(client.get_run(active.info.run_id).data.metrics)
    assert logged["calibrated_log_loss"].dataset_name == "validation"
    assert logged["calibrated_log_loss"].step == 2
    (linked,) = client.get_run(active.info.run_id).inputs.dataset_inputs
    assert (linked.dataset.name, linked.dataset.digest) == ("validation", dataset.digest)


def test_a_model_of_another_run_becomes_an_input(client):
    y, p = rows()
    with mlflow.start_run():
        model = mlflow.initialize_logged_model(name="m")
    with mlflow.start_run() as active:
        log_evaluation(y, p, model_id=model.model_id)
        log_evaluation(y, p, model_id=model.model_id, step=1)
    inputs = client.get_run(active.info.run_id).inputs.model_inputs
    assert [entry.model_id for entry in inputs] == [model.model_id]


def test_metrics_belong_to_the_active_model_by_default(client):
    y, p = rows()
    with mlflow.start_run(), mlflow.set_active_model(name="m") as model:
        log_evaluation(y, p)
    logged = {metric.key for metric in client.get_logged_model(model.model_id).metrics}
    assert "calibrated_log_loss" in logged


def test_undefined_metric_warns_tags_and_returns_none(client):
    y, p = rows()
    reason = "val_log_loss was not logged: y_true must hold"
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match=reason):
        assert log_evaluation(np.zeros_like(y), p, prefix="val_") is None
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert gained_tags(run) == {"trueup.skipped.val_log_loss", "trueup.version"}
    assert "all labels are the same (0)" in run.data.tags["trueup.skipped.val_log_loss"]
    assert "Pass rows of every class" in run.data.tags["trueup.skipped.val_log_loss"]


@pytest.mark.parametrize(
    ("y_true", "y_pred", "reason"),
    [
        ([], [], "y_true must hold at least one row; got 0"),
        ([0, 1, 1], [0.4, np.nan, 0.2], "y_pred must be finite; got nan at index 1"),
        ([0, 1, 2], [[0.2, 0.3, 0.5], [0.1, 0.1, np.inf], [0.3] * 3], "y_pred must be finite"),
    ],
)
def test_nothing_to_score_and_a_diverged_training_do_not_end_the_run(
    client, y_true, y_pred, reason
):
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match=reason):
        assert log_evaluation(y_true, y_pred) is None
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert reason in run.data.tags["trueup.skipped.log_loss"]


@pytest.mark.parametrize("rows_with_a_warning", [([0, 0], [0.5, 0.5]), ([0, 1] * 20, [0, 1] * 20)])
def test_warnings_point_to_the_line_of_the_user(client, rows_with_a_warning):
    with mlflow.start_run(), pytest.warns(TrueupWarning) as caught:
        log_evaluation(*rows_with_a_warning)
    assert {warning.filename for warning in caught} == {__file__}


def test_invalid_argument_raises_and_logs_nothing(client):
    with mlflow.start_run() as active:
        with pytest.raises(InvalidInputError, match=r"y_pred must be in \[0, 1\]; got 1.5"):
            log_evaluation([0, 1], [0.5, 1.5])
        with pytest.raises(InvalidInputError):
            log_evaluation([0, 1], [0.5, 0.5], loss="no_such_loss")
        with pytest.raises(TypeError, match="unknown_keyword"):
            log_evaluation([0, 1], [0.5, 0.5], unknown_keyword=1)
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert gained_tags(run) == set()


class BrokenLoss(LogLoss):
    def values(self, y_true, margin):
        raise TypeError("not a mistake of the call")


def test_type_error_from_inside_is_a_tag(client):
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match="mistake of the call"):
        assert log_evaluation(*rows(), loss=BrokenLoss()) is None
    tags = client.get_run(active.info.run_id).data.tags
    assert "TypeError" in tags["trueup.skipped.log_loss"]


def test_refused_key_warns_tags_and_returns_the_evaluation(client):
    y, p = rows()
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match="writing failed"):
        evaluation = log_evaluation(y, p, prefix="a=")
    assert evaluation == trueup.evaluate(y, p)
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert "Invalid value" in run.data.tags["trueup.skipped.a_log_loss"]


def test_unknown_run_warns_and_returns_the_evaluation(client):
    y, p = rows()
    with pytest.warns(TrueupWarning) as caught:
        assert log_evaluation(y, p, run_id="0" * 32) is not None
    messages = [str(warning.message) for warning in caught]
    assert any("log_loss was not logged: writing failed" in message for message in messages)
    assert any("the run could not be tagged" in message for message in messages)


@pytest.mark.parametrize("run_id", [None, "0" * 32])
def test_a_server_that_is_gone_does_not_end_the_run(run_id, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # nobody listens on discard
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    y, p = rows()
    with pytest.warns(TrueupWarning, match="log_loss was not logged|could not be tagged"):
        assert log_evaluation(y, p, run_id=run_id, figures=True) == trueup.evaluate(y, p)


def test_values_that_are_not_finite_are_tagged_not_logged(client):
    y = np.array([1e200, 2e200, 3e200, 5e200])
    with mlflow.start_run() as active, pytest.warns(TrueupWarning, match="finite"):
        log_evaluation(y, -y, loss="mean_squared_error", split=trueup.InSample())
    run = client.get_run(active.info.run_id)
    assert run.data.metrics == {}
    assert "trueup.skipped.mean_squared_error" in run.data.tags


def test_threads_log_to_their_own_runs(client):
    def work(seed):
        y, p = rows(seed=seed)
        with mlflow.start_run() as active:
            for step in range(3):
                evaluation = log_evaluation(y, p, step=step)
        return active.info.run_id, evaluation.calibrated

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(8)))
    for run_id, calibrated in results:
        history = client.get_metric_history(run_id, "calibrated_log_loss")
        assert [(point.step, point.value) for point in history] == [
            (step, calibrated) for step in range(3)
        ]


def test_asynchronous_logging_arrives(client, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_LOGGING", "true")
    with mlflow.start_run() as active:
        log_evaluation(*rows())
    mlflow.flush_async_logging()
    assert "calibrated_log_loss" in client.get_run(active.info.run_id).data.metrics


def test_a_field_of_too_many_levels_does_not_end_the_run_that_logs_it(client, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "399")
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match=LIMIT_VARIABLE):
        assert log_evaluation([0, 1] * 200, [0.4] * 400, fields={"user": np.arange(400)}) is None
    assert LIMIT_VARIABLE in client.get_run(run.info.run_id).data.tags["trueup.skipped.log_loss"]
