"""A registered model with a check, and rows for it."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.databases import new_database

from trueup_mlflow import monitor
from trueup_mlflow.monitor.check.registered_model import resolve

URI = "models:/demand/1"


def draw(n, start=0, shift=0.0, seed=0):
    rng = np.random.default_rng([seed, start])
    x = rng.normal(shift, 1.0, size=(n, 2))
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "y": x[:, 0] + 0.5 * rng.normal(size=n),
            "id": np.arange(start, start + n),
        }
    )


def registered(tmp_path_factory):
    """Yield the folder of a store with a registered model that has a check: a module's fixture."""
    folder = tmp_path_factory.mktemp("store")
    mlflow.set_tracking_uri(new_database(folder))
    client = MlflowClient()
    for name in ("models", "trueup/demand", "trueup/churn"):
        client.create_experiment(name, artifact_location=(folder / "files").as_uri())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_EXPERIMENT_NAME", "models")
        train = draw(400, seed=1)
        register(LinearRegression().fit(train[["a", "b"]], train["y"]), "demand")
        labels = (train["y"] > 0).astype(float)
        register(LogisticRegression().fit(train[["a", "b"]], labels), "churn")
        client.set_registered_model_alias("demand", "champion", "1")
        monitor.init(URI, draw(400, seed=2), target="y", row_id="id")
        yield folder
    mlflow.set_tracking_uri(None)  # back to the environment: the command sets it too


def register(model, name, **options):
    with mlflow.start_run():
        mlflow.sklearn.log_model(
            model,
            name="model",
            registered_model_name=name,
            pip_requirements=["scikit-learn"],
            **options,
        )


def version():
    return resolve(URI, MlflowClient())
