"""What gets a check and what is refused, with nothing half registered."""

from __future__ import annotations

import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression
from tests.trueup_mlflow.monitored import URI, draw, register, registered

from trueup.errors import InvalidInputError
from trueup_cli.monitor import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor_batches import init_missing

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
store = pytest.fixture(scope="module")(registered)


def test_every_version_without_a_check_gets_one(store, tmp_path):
    train = draw(100, seed=10)
    for _ in range(2):
        register(LinearRegression().fit(train[["a", "b"]], train["y"]), "pair")
    MlflowClient().create_experiment("trueup/pair", artifact_location=(store / "files").as_uri())
    train.to_parquet(tmp_path / "reference.parquet")
    arguments = ["init", "models:/pair", "--reference", str(tmp_path / "reference.parquet")]
    arguments += ["--target", "y", "--row-id", "id", "--all-missing"]
    ran = CliRunner().invoke(command, arguments)
    assert ran.stdout.split() == [
        "models:/pair__trueup_check/1",
        "models:/pair__trueup_check/2",
    ]
    assert CliRunner().invoke(command, arguments).stdout == ""
    with pytest.raises(InvalidInputError, match="name must be a registered model; got 'none'"):
        init_missing("none", train, target="y")


def test_a_classifier_is_monitored_by_its_brier_score(store):
    reference = draw(400, seed=3).assign(y=lambda t: (t["y"] > 0).astype(float))
    monitor.init("models:/churn/1", reference, target="y", reference_is="train", row_id="id")
    estimate = monitor.estimate("models:/churn/1", draw(300, start=100).drop(columns="y"))
    assert set(estimate.members) == {
        "importance",
        "neighbours",
        "one_step_offset",
        "direct_loss",
    }
    assert 0.03 < estimate.mse < 0.25


@pytest.mark.parametrize(
    ("uri", "change", "options", "message"),
    [
        ("models:/none/1", {}, {}, "model_uri must be a registered model version"),
        ("runs:/abc/model", {}, {}, "model_uri must be models:/NAME/VERSION"),
        (URI, {}, {"target": "z"}, "reference must have the column 'z'"),
        (URI, {"columns": ["a"]}, {}, "batch must be what the model takes"),
        (URI, {"rows": 20}, {}, "reference must have at least 30 rows; got 20"),
    ],
)
def test_nothing_is_registered_when_init_fails(store, uri, change, options, message):
    reference = draw(change.get("rows", 100)).drop(columns=change.get("columns", []))
    count = len(MlflowClient().search_model_versions("name='demand__trueup_check'"))
    with pytest.raises(InvalidInputError, match=message):
        monitor.init(uri, reference, **{"target": "y", "row_id": "id", **options})
    after = MlflowClient().search_model_versions("name='demand__trueup_check'")
    assert len(after) == count


def test_bad_batches_and_labels_are_errors(store):
    batch = draw(50, start=8_000)
    for call, message in (
        (lambda: monitor.estimate(URI, batch[["a", "id"]]), r"without \['b'\]"),
        (lambda: monitor.estimate(URI, batch[["a", "b"]]), "must have the row id column 'id'"),
        (lambda: monitor.estimate(URI, batch, at="soon"), "at must be an ISO date; got 'soon'"),
        (lambda: monitor.estimate(URI, "batch.txt"), "file must end in .parquet"),
        (lambda: monitor.realize(URI, batch[["y"]]), "labelled must have the columns 'id'"),
        (
            lambda: monitor.realize(URI, pd.concat([batch, batch])),
            "labelled must have one label for each row id",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()


def test_a_version_without_a_check_names_the_command(store):
    train = draw(100, seed=9)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "unchecked")
    with pytest.raises(InvalidInputError, match="trueup monitor init models:/unchecked/1"):
        monitor.estimate("models:/unchecked/1", train)
