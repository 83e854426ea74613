"""Projects that know nothing of trueup, run with ``TRUEUP_AUTOLOG=1``: docs/autolog.md's table."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import mlflow
import numpy as np
import pytest
from tests.warm import PYTHON

import trueup
from trueup_mlflow.write.items import COVERAGE_TAG

PROJECTS = Path(__file__).parent / "projects"


def log_loss(columns):
    y = columns["y"].astype(int)
    if "p" in columns:
        return trueup.evaluate(y, columns["p"])
    return trueup.evaluate(y, y_logit=columns["z"])


def squared_error(columns):
    return trueup.evaluate(columns["t"], columns["z"], loss="mean_squared_error")


TWINS = {
    "sklearn": {"val_loss": log_loss},
    "torch": {"val_loss": log_loss},
    "processes": {"val_loss": log_loss},
    "torchmetrics": {"val_loss": log_loss, "val_mse": squared_error, "val_rmse": squared_error},
    "lightning": {"val_loss": log_loss},
    "lightning_autolog": {"val_loss": log_loss},
    "keras": {"val_loss": log_loss},
    "huggingface": {"eval_loss": log_loss},
    "xgboost": {"val-logloss": log_loss},
    "lightgbm": {"val-binary_logloss": log_loss},
}


def run_project(name):
    environment = {**os.environ, "TRUEUP_AUTOLOG": "1", "OMP_NUM_THREADS": "1"}
    command = [PYTHON, str(PROJECTS / f"with_{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    shown = next(line for line in done.stdout.splitlines() if line.startswith("SHOW "))
    columns = {k: np.array(v) for k, v in json.loads(shown.removeprefix("SHOW ")).items()}
    return done, columns


REASONS = {
    "sklearn": "none of val_accuracy: no watched loss",
    "processes": "; a mean over several processes is not recognised, since each sees its own rows",
    "keras": "or give the training trueup_mlflow.KerasCallback.",
}
NEEDS = {"keras": "keras", "huggingface": "transformers"}


@pytest.mark.parametrize("name", TWINS)
def test_project_gains_the_twins_that_evaluate_gives(name, client):
    if importlib.util.find_spec(NEEDS.get(name, "mlflow")) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    done, columns = run_project(name)
    (run,) = mlflow.search_runs(experiment_names=["tests"], output_format="list")
    metrics = run.data.metrics
    found = {key.removeprefix("calibrated_") for key in metrics if key.startswith("calibrated_")}
    assert found == TWINS[name].keys(), done.stderr
    for key, evaluate in TWINS[name].items():
        calibrated = evaluate(columns).calibrated
        expected = calibrated**0.5 if "rmse" in key else calibrated
        assert metrics[f"calibrated_{key}"] == pytest.approx(expected, rel=1e-12)
    coverage = run.data.tags[COVERAGE_TAG]
    assert f"trueup: run {run.info.run_id}: {coverage}" in done.stderr
    assert coverage.startswith("twins of ")
    assert REASONS.get(name, "") in coverage
