"""Watchers that are killed, and two at once: no batch is lost and none is logged twice."""

import os
import time
import warnings
from signal import SIGKILL

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression
from tests.databases import new_database
from tests.forked import PROCESSES

from trueup_cli.app import app
from trueup_mlflow import monitor
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.store import MonitorStore

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
URI = "models:/demand/1"


def draw(n, seed):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0], "id": np.arange(n)})


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A model with a check in a store of its own."""
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "models")
    mlflow.set_tracking_uri(new_database(tmp_path))
    for name in ("models", "trueup/demand"):
        MlflowClient().create_experiment(name, artifact_location=(tmp_path / "files").as_uri())
    train = draw(60, 0)
    noisy = train["y"] + np.random.default_rng(1).normal(size=60)
    with mlflow.start_run():
        mlflow.sklearn.log_model(
            LinearRegression().fit(train[["a", "b"]], noisy),
            name="model",
            registered_model_name="demand",
            pip_requirements=["scikit-learn"],
        )
    monitor.init(URI, draw(60, 2).assign(y=noisy), target="y", row_id="id")
    yield tmp_path
    mlflow.set_tracking_uri(None)


def fill(folder, n, seed, first=0):
    folder.mkdir(exist_ok=True)
    for k in range(first, first + n):
        path = folder / f"{k}.parquet"
        draw(50, [seed, k]).drop(columns="y").to_parquet(path)
        os.utime(path, (0, 0))  # or the watcher waits in case it is still written
    return folder


def run_watch(uri, folder):
    warnings.simplefilter("ignore")
    app(["monitor", "watch", URI, str(folder), "--once", "--tracking-uri", uri])


def watch(folder):
    process = PROCESSES.Process(target=run_watch, args=(mlflow.get_tracking_uri(), folder))
    process.start()
    return process


def finish(process):
    process.join(300)
    assert process.exitcode == 0


def check_exactly_once(n):
    records = monitor.records(URI)
    assert len(records) == n
    assert all(record.logged for record in records)
    client = MlflowClient()
    store = MonitorStore(resolve(URI, client), client)
    for key in ("estimated_mse", "estimated_mse_one_step", "trusted"):
        history = client.get_metric_history(store.run().info.run_id, key)
        points = {(point.timestamp, point.step) for point in history}
        assert points == {(record.timestamp, record.step) for record in records}
        assert len(history) == n
    assert all(len(store.predictions(record.digest)) == record.n for record in records)


@pytest.mark.slow
def test_watchers_killed_at_any_point_lose_and_double_nothing(registered):
    folder, n, kills = registered / "inbox", 0, 0
    for delay in (0.0, 0.05, 0.12, 0.2):
        fill(folder, 3, seed=3, first=n)  # each watcher has something to do when it is killed
        n += 3
        process, done = watch(folder), len(list(folder.glob("done/*")))
        while len(list(folder.glob("done/*"))) == done and process.is_alive():
            time.sleep(0.002)
        time.sleep(delay)
        process.kill()
        process.join()
        kills += process.exitcode == -SIGKILL
    assert kills >= 2
    finish(watch(folder))
    assert len(list((folder / "done").iterdir())) == n
    assert not list(folder.glob("*.parquet"))
    check_exactly_once(n)


@pytest.mark.slow
def test_two_watchers_at_once_lose_nothing(registered):
    folders = [fill(registered / name, 4, seed) for name, seed in (("one", 5), ("two", 6))]
    for process in [watch(folder) for folder in folders]:
        finish(process)
    assert all(len(list((folder / "done").iterdir())) == 4 for folder in folders)
    check_exactly_once(8)


def estimate_all(uri, batches, at, barrier):
    warnings.simplefilter("ignore")
    mlflow.set_tracking_uri(uri)
    for batch in batches:
        barrier.wait(300)
        monitor.estimate(URI, batch, at=at)


@pytest.mark.slow
def test_the_same_batches_given_to_three_processes_at_once_are_logged_once(registered):
    batches = [draw(50, [7, k]).drop(columns="y") for k in range(6)]
    barrier = PROCESSES.Barrier(3)
    times = ("2026-01-01", "2026-02-01", "2026-03-01")
    shared = mlflow.get_tracking_uri(), batches
    processes = [
        PROCESSES.Process(target=estimate_all, args=(*shared, at, barrier)) for at in times
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    check_exactly_once(6)
    model_id = resolve(URI, MlflowClient()).model_id
    metrics = MlflowClient().get_logged_model(model_id).metrics
    assert [metric.key for metric in metrics].count("estimated_mse") == 6
