"""What autologging can't do is told, and is never an error of the user's run."""

from __future__ import annotations

import subprocess

import mlflow
import pytest
from sklearn.metrics import log_loss
from tests.databases import new_database
from tests.warm import PYTHON

from trueup import HoldOut
from trueup.errors import TrueupWarning
from trueup_mlflow import autolog


def log_twice(key, value):
    for step in range(2):
        mlflow.log_metric(key, value, step=step)


def test_undefined_metric_is_a_tag_and_one_warning(client, off_at_the_end, binary):
    autolog(split=HoldOut(0.02))
    value = log_loss(binary.y, binary.p)
    with (
        mlflow.start_run() as run,
        pytest.warns(TrueupWarning, match="calibrated values of loss") as seen,
    ):
        log_twice("loss", value)
    data = client.get_run(run.info.run_id).data
    assert data.metrics == {"loss": value}
    assert "at least 10 rows of each class" in data.tags["trueup.skipped.loss"]
    assert len(seen) == 1


@pytest.mark.parametrize("log", [mlflow.log_metric, lambda k, v: mlflow.log_metrics({k: v})])
def test_warning_points_to_the_users_line(client, off_at_the_end, binary, log):
    autolog(split=HoldOut(0.02))
    with mlflow.start_run(), pytest.warns(TrueupWarning) as seen:
        log("loss", log_loss(binary.y, binary.p))
    assert seen[0].filename == __file__


def test_user_errors_of_metric_and_logging_stay_the_users(client, autologging, binary):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        log_loss(binary.y[:-1], binary.p)
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run(), pytest.raises(mlflow.MlflowException, match="Invalid value"):
        mlflow.log_metric("a=b", value)


def test_key_that_leaves_no_room_for_a_longer_one_is_logged_without_twin(
    client, autologging, binary
):
    key = "k" * 245
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match="longer than 250"):
        mlflow.log_metric(key, log_loss(binary.y, binary.p))
    assert list(client.get_run(run.info.run_id).data.metrics) == [key]


def test_changed_inside_of_scikit_learn_is_one_warning_and_no_hook(tmp_path):
    code = """
import sklearn.metrics._classification as module, sklearn.metrics._regression as other, warnings
for place, name in ((module, "log_loss"), (other, "mean_squared_error")):
    setattr(place, name, lambda y_true, y_pred: 0.123456)
from trueup_mlflow import autolog
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    autolog()
print(len([w for w in seen if "autologging leaves out" in str(w.message)]))
import mlflow
with mlflow.start_run() as run:
    mlflow.log_metric("loss", module.log_loss(None, None))
print(mlflow.get_run(run.info.run_id).data.metrics)
"""
    environment = {"MLFLOW_TRACKING_URI": new_database(tmp_path), "PATH": ""}
    place = {"cwd": tmp_path, "env": environment}
    run = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, **place)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["1", "{'loss': 0.123456}"]
