"""The calibrated model as a pyfunc: on a real store and registry, with pickle disallowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests.databases import new_database

from trueup.calibrators import (
    CalibratedModel,
    FieldOffsetCalibrator,
    Guarded,
    NeuralCalibrator,
    ShiftCalibrator,
)
from trueup.errors import InvalidInputError
from trueup_mlflow import log_calibrated_model


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
        patch.chdir(folder)
        patch.setenv("MLFLOW_TRACKING_URI", new_database(folder))
        mlflow.create_experiment("calibrated", artifact_location=(folder / "artifacts").as_uri())
        patch.setenv("MLFLOW_EXPERIMENT_NAME", "calibrated")
        yield


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 6000
    frame = pd.DataFrame({"age": rng.normal(size=n), "site": rng.integers(0, 5, n)})
    bias = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[frame["site"]]
    y = (rng.random(n) < expit(frame["age"] + bias)).astype(int)
    return frame, y


@pytest.fixture
def booster(rows):
    frame, y = rows
    data = xgboost.DMatrix(frame[["age", "site"]][:2000], y[:2000])
    return xgboost.train({"objective": "binary:logistic", "max_depth": 1}, data, 5)


def probabilities(booster, frame):
    return booster.predict(xgboost.DMatrix(frame[["age", "site"]]))


def test_pyfunc_predicts_like_the_calibrated_model_without_pickle(store, rows, booster):
    frame, y = rows
    model = CalibratedModel(
        lambda X: probabilities(booster, X), FieldOffsetCalibrator(), fields=["site"]
    ).fit(frame[2000:4000], y[2000:4000])
    assert model.decision_.kept
    with mlflow.start_run():
        base = mlflow.xgboost.log_model(booster, name="base", pip_requirements=["xgboost-cpu"])
        info = log_calibrated_model(base.model_uri, model, registered_model_name="shop")
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    expected = model.predict_proba(frame[4000:])[:, 1]
    np.testing.assert_allclose(loaded.predict(frame[4000:]), expected, atol=1e-12)
    registered = mlflow.pyfunc.load_model("models:/shop/1")
    np.testing.assert_allclose(registered.predict(frame[4000:]), expected, atol=1e-12)


def test_registered_model_predicts_in_a_fresh_process_without_pickle_and_torch(
    store, rows, booster, tmp_path
):
    frame, y = rows
    p = probabilities(booster, frame)
    fields = {"site": frame["site"][2000:4000]}
    calibrator = Guarded(NeuralCalibrator(epochs=1)).fit(p[2000:4000], y[2000:4000], fields=fields)
    with mlflow.start_run():
        base = mlflow.xgboost.log_model(booster, name="base", pip_requirements=["xgboost-cpu"])
        log_calibrated_model(
            base.model_uri, calibrator, fields=["site"], registered_model_name="fresh"
        )
    frame[4000:].to_parquet(tmp_path / "rows.parquet")
    code = (
        "import os, sys, mlflow, numpy, pandas\n"
        "assert os.environ['MLFLOW_ALLOW_PICKLE_DESERIALIZATION'] == 'false'\n"
        "model = mlflow.pyfunc.load_model('models:/fresh/1')\n"
        f"proba = model.predict(pandas.read_parquet({str(tmp_path / 'rows.parquet')!r}))\n"
        f"numpy.save({str(tmp_path / 'proba.npy')!r}, proba)\n"
        "assert 'torch' not in sys.modules\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    expected = calibrator.predict_proba(p[4000:], fields={"site": frame["site"][4000:]})[:, 1]
    np.testing.assert_allclose(np.load(tmp_path / "proba.npy"), expected, atol=1e-12)


def test_artifacts_are_code_json_and_npz(store, rows, booster):
    frame, y = rows
    p = probabilities(booster, frame)
    calibrator = ShiftCalibrator().fit(p, y)
    with mlflow.start_run():
        base = mlflow.xgboost.log_model(booster, name="base", pip_requirements=["xgboost-cpu"])
        info = log_calibrated_model(base.model_uri, calibrator)
    folder = mlflow.artifacts.download_artifacts(artifact_uri=info.model_uri)
    names = {path.name for path in Path(folder).rglob("*") if path.is_file()}
    assert {"calibrated_pyfunc.py", "calibrator.json", "calibrator.npz"} <= names
    assert not any(name.endswith((".pkl", ".pickle")) for name in names)


def test_a_model_that_predicts_labels_is_refused(store, rows):
    frame, y = rows
    model = LogisticRegression().fit(frame[["age"]], y)
    with mlflow.start_run():
        base = mlflow.sklearn.log_model(model, name="base", pip_requirements=[])
        with pytest.raises(InvalidInputError, match="model_uri must be a model whose predict"):
            log_calibrated_model(base.model_uri, ShiftCalibrator().fit([0.2, 0.3], [0, 1]))
