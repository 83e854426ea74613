"""Twins go where their metric goes: run, step, model, thread and request."""

from __future__ import annotations

import threading
import warnings

import mlflow
import numpy as np
import pytest
from mlflow.entities import Metric, RunTag
from sklearn.metrics import log_loss

import trueup
from trueup_mlflow import autolog
from trueup_mlflow.write.items import is_own_key

with warnings.catch_warnings():  # MLflow warns of models without type hints
    warnings.simplefilter("ignore")

    class Identity(mlflow.pyfunc.PythonModel):
        def predict(self, model_input):
            return model_input


def own(metrics):
    return {key for key in metrics if is_own_key(key)}


def test_twins_go_into_the_same_batch_with_step_timestamp_model_and_dataset(
    client, autologging, binary
):
    dataset = mlflow.data.from_numpy(binary.p, targets=binary.y, name="val")
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        model = mlflow.initialize_logged_model(name="m")
        mlflow.log_metrics(
            {"loss": value, "other": 1.5},
            step=7,
            timestamp=1234567,
            model_id=model.model_id,
            dataset=dataset,
        )
    for key in ("loss", "calibrated_loss", "bias_term_loss", "bias_cost_loss"):
        (point,) = client.get_metric_history(run.info.run_id, key)
        assert (point.step, point.timestamp) == (7, 1234567)
    on_model = {
        metric.key: (metric.step, metric.timestamp, metric.dataset_name, metric.dataset_digest)
        for metric in client.get_logged_model(model.model_id).metrics
    }
    assert {"loss", "calibrated_loss", "bias_term_loss", "bias_cost_loss"} <= on_model.keys()
    assert set(on_model.values()) == {(7, 1234567, dataset.name, dataset.digest)}
    assert not any("other" in key for key in own(client.get_run(run.info.run_id).data.metrics))


def test_series_over_steps_gets_a_twin_at_each_step(client, autologging, binary):
    with mlflow.start_run() as run:
        for step in range(4):
            mlflow.log_metric("loss", log_loss(binary.y, binary.p * (0.9 + 0.01 * step)), step=step)
    history = client.get_metric_history(run.info.run_id, "calibrated_loss")
    assert [point.step for point in history] == [0, 1, 2, 3]


def test_nested_run_alone_gains_the_twin(client, autologging, binary):
    with mlflow.start_run() as parent, mlflow.start_run(nested=True) as child:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
    assert "calibrated_loss" in client.get_run(child.info.run_id).data.metrics
    assert client.get_run(parent.info.run_id).data.metrics == {}


def test_threads_log_to_their_own_runs(client, autologging):
    rows = [trueup_rows(seed) for seed in range(4)]
    runs = [client.create_run(client.get_experiment_by_name("tests").experiment_id) for _ in rows]

    def work(index):
        y, p = rows[index]
        client.log_metric(runs[index].info.run_id, "loss", log_loss(y, p))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run, (y, p) in zip(runs, rows, strict=True):
        calibrated = client.get_run(run.info.run_id).data.metrics["calibrated_loss"]
        assert calibrated == pytest.approx(trueup.evaluate(y, p).calibrated, rel=1e-12)


def trueup_rows(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, 300)
    return (rng.uniform(size=300) < p).astype(int), p * 0.9


def test_asynchronous_logging_carries_the_twin(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", value, synchronous=False).wait()
        mlflow.log_metrics({"again": value}, synchronous=False).wait()
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics["calibrated_loss"] == metrics["calibrated_again"]


def test_model_logged_later_at_the_step_gets_the_twins_once(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
        model = mlflow.pyfunc.log_model(name="m", python_model=Identity(), pip_requirements=[])
    on_model = [m.key for m in client.get_logged_model(model.model_id).metrics]
    assert sorted(on_model) == [
        "bias_cost_loss",
        "bias_term_loss",
        "calibrated_loss",
        "loss",
    ]
    assert len(client.get_metric_history(run.info.run_id, "calibrated_loss")) == 1


def test_batch_of_params_and_tags_keeps_them(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        client.log_batch(
            run.info.run_id,
            [Metric("loss", value, 1, 0)],
            (),
            [RunTag("mine", "kept")],
        )
    data = client.get_run(run.info.run_id).data
    assert data.tags["mine"] == "kept"
    assert "calibrated_loss" in data.metrics


def test_logged_metric_costs_no_request_more(server, off_at_the_end, binary):
    value = log_loss(binary.y, binary.p)

    def requests(key):
        with mlflow.start_run():
            server.requests.clear()
            mlflow.log_metric(key, value)
            one = server.paths()
            server.requests.clear()
            mlflow.log_metrics({key: value, "other": 1.5}, step=1)
            return one, server.paths()

    one, several = requests("loss")
    assert one == ["runs/log-metric"]
    autolog()
    value = log_loss(binary.y, binary.p)
    one_with_twins, several_with_twins = requests("loss")
    assert one_with_twins == ["runs/log-batch"]
    assert several_with_twins == several == ["runs/log-batch"]
    latest = mlflow.search_runs(experiment_names=["tests"], max_results=1)
    assert latest["metrics.calibrated_loss"].notna().all()
