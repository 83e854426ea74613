"""Docstring examples of the plugins run in a folder and a store of their own.

Those of the monitor find a registered model ``models:/demand/1`` with its check, and the tables
``held_out``, ``january``, ``february`` (without labels) and ``january_labels``; those of Spark find
a session ``spark``, those of tuning ``train`` and a ``study`` of six trials. An example of a
framework that is not installed is skipped.
"""

from __future__ import annotations

import pytest
from tests.spark_session import WITHOUT_JAVA, local_session

FRAMEWORKS = {"huggingface": "transformers", "keras": "keras", "lightning": "lightning"}


def pytest_collection_modifyitems(items):
    """Let frameworks warn about themselves, as the tests of the callbacks do."""
    for item in items:
        if FRAMEWORKS.keys() & {*item.name.split(".")} or item.name.startswith("trueup_spark"):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(autouse=True)
def _own_store(request, tmp_path, monkeypatch):
    name = request.node.name
    for framework in FRAMEWORKS.keys() & {*name.split(".")}:
        monkeypatch.setenv("KERAS_BACKEND", "torch")
        pytest.importorskip(FRAMEWORKS[framework])
    if name.startswith("trueup_spark"):
        request.getfixturevalue("_spark")
    of_monitor = name.startswith("trueup_mlflow.monitor")
    folder = request.getfixturevalue("_monitored") if of_monitor else tmp_path
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
    if request.node.name.startswith(("trueup_optuna", "trueup_mlflow.log.log_study")):
        request.getfixturevalue("doctest_namespace").update(_tuned())
    yield
    import mlflow

    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(None)


def _tuned():
    """Return the function and the study of the example of ``SeedObjective``."""
    import optuna
    from tests.trueup_optuna.six_trials import six_trials, train

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return {"study": six_trials(), "train": train}


@pytest.fixture(scope="session")
def _spark(tmp_path_factory, doctest_namespace):
    if WITHOUT_JAVA:
        pytest.skip("Spark needs Java, which is missing")
    pytest.importorskip("pyspark")
    options = {"spark.sql.shuffle.partitions": "2"}
    with local_session(tmp_path_factory.mktemp("spark"), options) as session:
        doctest_namespace["spark"] = session
        yield


@pytest.fixture(scope="session")
def _monitored(tmp_path_factory, doctest_namespace):
    """Return the folder of a store that holds a monitored model."""
    import mlflow
    import numpy as np
    import pandas as pd
    from sklearn.linear_model import LinearRegression

    from trueup_mlflow import monitor

    folder = tmp_path_factory.mktemp("monitored")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(900, 2)), columns=["temperature", "hour"])
    rows["y"] = rows["temperature"] + 0.5 * rng.normal(size=900)
    rows["id"] = np.arange(900)
    features = ["temperature", "hour"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
        model = LinearRegression().fit(rows[features][:300], rows["y"][:300])
        with mlflow.start_run():
            mlflow.sklearn.log_model(
                model,
                name="model",
                registered_model_name="demand",
                pip_requirements=["scikit-learn"],
                signature=mlflow.models.infer_signature(
                    rows[features], model.predict(rows[features])
                ),
            )
        monitor.init("models:/demand/1", rows[300:600], target="y", row_id="id")
    mlflow.set_tracking_uri(None)
    doctest_namespace.update(
        held_out=rows[300:600],
        january=rows[600:750][[*features, "id"]],
        february=rows[750:][[*features, "id"]],
        january_labels=rows[600:750][["id", "y"]],
    )
    return folder
