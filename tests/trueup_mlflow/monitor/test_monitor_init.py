"""What gets a check and what is refused, with nothing half registered."""

from __future__ import annotations

import os
from datetime import timedelta

import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.linear_model import LinearRegression
from tests.trueup_mlflow.monitored import URI, draw, register, registered

from trueup.errors import InvalidInputError
from trueup_cli.monitor.commands import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.batches import init_missing
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.store import MonitorStore

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
REFERENCE = ("--reference", "r.csv", "--target", "y")
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
    again = CliRunner().invoke(command, arguments)
    assert again.stdout == ""
    assert again.stderr == "every version of pair has a check\n"
    with pytest.raises(InvalidInputError, match="name must be a registered model; got 'none'"):
        init_missing("none", train, target="y")
    one_column = CliRunner().invoke(command, [*arguments, "--predicted", "a"])
    assert one_column.exit_code == 2
    assert "--predicted must be left out for all versions" in one_column.output


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
        (URI, {"columns": ["a"]}, {}, "rows must be what the model takes"),
        (URI, {"rows": 20}, {}, "reference must have at least 30 rows; got 20"),
        (URI, {}, {"reference_is": "train", "features": ["a"]}, "reference_is must be 'held-out'"),
        (URI, {}, {"reference_is": "train", "ignore": ["b"]}, "features or ignore are given"),
        (URI, {"assign": {"y": "high"}}, {}, "target must be numbers"),
        (URI, {}, {"features": ["a", "y"]}, "target must be another column than row_id, time and"),
        (URI, {}, {"row_id": "y"}, "target must be another column"),
        (URI, {}, {"time": "y"}, "target must be another column"),
    ],
)
def test_nothing_is_registered_when_init_fails(store, uri, change, options, message):
    reference = draw(change.get("rows", 100)).drop(columns=change.get("columns", []))
    reference = reference.assign(**change.get("assign", {}))
    count = len(MlflowClient().search_model_versions("name='demand__trueup_check'"))
    with pytest.raises(InvalidInputError, match=message):
        monitor.init(uri, reference, **{"target": "y", "row_id": "id", **options})
    after = MlflowClient().search_model_versions("name='demand__trueup_check'")
    assert len(after) == count


def test_the_command_refuses_features_of_training_rows(store, tmp_path):
    draw(100).to_parquet(tmp_path / "train.parquet")
    arguments = ["init", URI, "--reference", str(tmp_path / "train.parquet"), "--target", "y"]
    ran = CliRunner().invoke(command, [*arguments, "--reference-is", "train", "--ignore", "b"])
    assert ran.exit_code == 2
    assert "--reference-is must be 'held-out' where" in ran.stderr


def test_bad_batches_and_labels_are_errors(store):
    batch = draw(50, start=8_000)
    monitor.estimate(URI, batch, at="2026-01-31")
    for call, message in (
        (lambda: monitor.estimate(URI, batch[["a", "id"]]), r"got none of \['b'\]"),
        (lambda: monitor.estimate(URI, batch.head(0)), "batch must hold rows; got none"),
        (lambda: monitor.estimate(URI, batch[["a", "b"]]), "must have the row id column 'id'"),
        (lambda: monitor.estimate(URI, batch, at="soon"), "at must be an ISO date; got 'soon'"),
        (lambda: monitor.estimate(URI, "batch.txt"), "file must end in .parquet"),
        (lambda: monitor.realize(URI, batch[["y"]]), "labelled must have the columns 'id'"),
        (
            lambda: monitor.realize(URI, pd.concat([batch, batch.assign(y=batch["y"] + 1.0)])),
            "labelled must have one label for each row id; got two for 8000",
        ),
        (lambda: monitor.realize(URI, batch.assign(y="high")), "labelled must be numbers"),
        (
            lambda: monitor.realize(URI, batch.astype({"id": str})),
            "labelled must have row ids of the type that the batch had; got str, int64",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()


def test_a_version_without_a_check_names_the_command(store):
    train = draw(100, seed=9)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "unchecked")
    with pytest.raises(InvalidInputError, match="trueup monitor init models:/unchecked/1"):
        monitor.estimate("models:/unchecked/1", train)


def test_a_version_without_a_batch_has_no_report(store, tmp_path):
    with pytest.raises(InvalidInputError, match="model_uri must be a version with a check"):
        monitor.report("models:/demand__trueup_check/1", tmp_path / "r.html")
    train = draw(100, seed=11)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "fresh")
    monitor.init("models:/fresh/1", train, target="y", row_id="id")
    with pytest.raises(InvalidInputError, match="with: trueup monitor run models:/fresh/1 --batch"):
        monitor.report("models:/fresh/1", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_the_command_says_nothing_of_artifacts_and_signatures(store, tmp_path):
    draw(60).to_parquet(tmp_path / "reference.parquet")
    arguments = ["init", URI, "--reference", str(tmp_path / "reference.parquet"), "--target", "y"]
    ran = CliRunner().invoke(command, [*arguments, "--row-id", "id"])
    assert ran.exit_code == 0, ran.output
    assert "Downloading" not in ran.output
    assert "signature" not in ran.output
    assert "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR" not in os.environ


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("init", URI, "--all-missing", *REFERENCE), "--all-missing must come with models:/NAME"),
        (
            ("init", "models:/demand@champion", "--all-missing", *REFERENCE),
            "--all-missing must come with models:/NAME",
        ),
        (("run", URI, "--batch", "b.csv", "--period", "week"), "--period must come with --time"),
        (
            ("run", URI, "--batch", "b.csv", "--period", "day", "--chunk-rows", "9"),
            "--period must come with --time",
        ),
        (
            ("run", URI, "--batch", "b.csv", "--time-format", "%Y", "--segment", "a"),
            "--time-format must come with --time",
        ),
        (
            ("run", URI, "--batch", "b.csv", "--segment", "a", "--chunk-rows", "9"),
            "--segment is of one batch",
        ),
        (("watch", URI, ".", "--once", "--seconds", "3"), "--seconds must come without --once"),
        (
            ("watch", URI, ".", "--once", "--modified-time", "--name-pattern", "(.*)"),
            "exclude each other; got 2 of them",
        ),
        (
            ("watch", URI, ".", "--once", "--modified-time", "--time-format", "%Y"),
            "--time-format must come with --time or --name-pattern",
        ),
    ],
)
def test_no_option_is_left_unheard_beside_another(arguments, message):
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 2, ran.output
    assert message in ran.output


def test_a_new_threshold_is_in_the_description_of_the_run_at_once(store):
    monitor.estimate(URI, draw(100, start=90_000).drop(columns="y"))
    monitor.init(URI, draw(400, seed=2), target="y", row_id="id", fail_above=1e-6)
    run = MonitorStore(resolve(URI, MlflowClient()), MlflowClient()).run()
    assert run.info.run_name == "monitor version 1: act"
    assert "lies above 1e-06" in run.data.tags["mlflow.note.content"]


def test_a_feed_that_never_began_is_listed_and_stale_by_the_age_of_its_check(store):
    train = draw(100, seed=10)
    register(LinearRegression().fit(train[["a", "b"]], train["y"]), "silent")
    MlflowClient().create_experiment("trueup/silent", artifact_location=(store / "f").as_uri())
    monitor.init("models:/silent/1", draw(60, seed=2), target="y", fail_above="2x")

    def silent(**options):
        return next(gate for gate in monitor.status(**options) if gate.model == "silent")

    assert (silent().code, silent().batch, silent().counts) == ("no batch", None, True)
    assert silent(fail_above="1.5x", stale_after="36h").code == "no batch"
    assert silent(stale_after=timedelta(0)).code == "stale"
    assert silent().to_dict()["time"] is None
    shown = CliRunner().invoke(command, ["status"]).stdout
    assert "models:/silent/1 no batch yet: trueup monitor run models:/silent/1 --batch" in shown
    asked = CliRunner().invoke(command, ["status", "models:/silent/1"])
    assert asked.exit_code == 2  # who names a version expects a batch
