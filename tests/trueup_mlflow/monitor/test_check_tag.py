"""A tag doesn't decide which code runs, and what reads results loads no model."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts
from tests.trueup_mlflow.monitored import URI, draw, registered

from trueup.errors import InvalidInputError
from trueup_mlflow import monitor

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
store = pytest.fixture(scope="module")(registered)
TAG = "trueup.check_model_uri"


class Trap(mlflow.pyfunc.PythonModel):
    """Leaves a file when it is loaded."""

    def load_context(self, context):
        Path(context.model_config["trap"]).touch()

    def predict(self, context, model_input: pd.DataFrame):
        return model_input


@pytest.fixture(scope="module")
def trap(store):
    marker = store / "sprung"
    mlflow.pyfunc.log_model(
        name="trap",
        python_model=Trap(),
        model_config={"trap": str(marker)},
        registered_model_name="trap",
        pip_requirements=[],
    )
    mlflow.end_run()
    return marker


@pytest.fixture
def tagged(store):
    client = MlflowClient()
    yield lambda uri: client.set_model_version_tag("demand", "1", TAG, uri)
    client.set_model_version_tag("demand", "1", TAG, "models:/demand__trueup_check/1")


@pytest.mark.parametrize(
    "uri",
    [
        "models:/trap/1",
        "models:/trap@champion",
        "demand__trueup_check/1",
        "models:/demand__trueup_check/1/../../trap/1",
        "models:/demand__trueup_check/latest",
        "/",
        "",
    ],
)
def test_a_tag_that_points_elsewhere_is_refused(uri, tagged, trap, tmp_path):
    tagged(uri)
    batch = draw(60, start=5_000)
    for call in (
        lambda: monitor.estimate(URI, batch.drop(columns="y")),
        lambda: monitor.realize(URI, batch[["id", "y"]]),
        lambda: monitor.report(URI, tmp_path / "page.html"),
    ):
        with pytest.raises(InvalidInputError, match=r"trueup\.check_model_uri of models:/demand/1"):
            call()
    assert not trap.exists()


def test_the_check_of_another_version_is_refused(tagged):
    client = MlflowClient()
    client.set_model_version_tag(
        "demand__trueup_check", "1", "trueup.checks_model_uri", "models:/x/1"
    )
    try:
        with pytest.raises(InvalidInputError, match="was made for it"):
            monitor.estimate(URI, draw(60, start=6_000).drop(columns="y"))
    finally:
        client.set_model_version_tag("demand__trueup_check", "1", "trueup.checks_model_uri", URI)


def test_what_reads_results_loads_no_model(store, tmp_path):
    batch = draw(80, start=7_000)
    monitor.estimate(URI, batch.drop(columns="y"), at="2026-01-31")
    for uri in (URI, "models:/demand__trueup_check/1"):
        folder = Path(download_artifacts(artifact_uri=uri))
        for stored in (store / "files").rglob("*"):
            if stored.suffix in (".pkl", ".npz", ".py", ".skops") and folder.exists():
                stored.unlink()
    assert monitor.realize(URI, batch[["id", "y"]]).n == 1
    assert monitor.report(URI, tmp_path / "page.html").is_file()
    assert [entry["model"] for entry in monitor.status()] == ["demand"]
    with pytest.raises(FileNotFoundError):
        monitor.estimate(URI, batch.drop(columns="y"))
