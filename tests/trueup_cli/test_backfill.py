from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database

import trueup
from trueup_cli.app import app
from trueup_mlflow import log_predictions

RNG = np.random.default_rng(0)
P = RNG.random(500)
Y = (RNG.random(500) < P).astype(int)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    client = MlflowClient(new_database(folder))
    client.create_experiment("tests", artifact_location=(folder / "files").as_uri())
    return client


def finished_run(client, y=Y):
    experiment = client.get_experiment_by_name("tests").experiment_id
    run_id = client.create_run(experiment).info.run_id
    log_predictions(y, P, run_id=run_id, client=client)
    client.set_terminated(run_id)
    return run_id


def backfill(client, *arguments):
    return CliRunner().invoke(app, ["backfill", "--tracking-uri", client.tracking_uri, *arguments])


def test_runs_are_filled_once(client):
    run_id = finished_run(client)
    first, second = backfill(client, run_id), backfill(client, run_id)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert first.stdout.splitlines() == [
        f"logged   {run_id} trueup/predictions_val.parquet log_loss",
        "1 logged, 0 present, 0 skipped",
    ]
    assert second.stdout.endswith("0 logged, 1 present, 0 skipped\n")
    metrics = client.get_run(run_id).data.metrics
    assert metrics["calibrated_log_loss"] == trueup.evaluate(Y, P).calibrated


def test_an_experiment_is_filled_and_what_is_skipped_has_its_reason(client):
    run_id = finished_run(client, np.zeros_like(Y))
    result = backfill(client, "--experiment", "tests", "--json")
    assert result.exit_code == 0, result.output
    entry = {entry["run_id"]: entry for entry in json.loads(result.stdout)}[run_id]
    assert entry["status"] == "skipped"
    assert "all labels are the same (0)" in entry["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "RUN_IDS or --experiment-name must name what to backfill"),
        (["0" * 32], f"Run with id={'0' * 32} not found"),
        (["--experiment", "nowhere"], "--experiment-name must name existing experiments"),
        (["--experiment", "tests", "--filter", "nonsense"], "Invalid"),
    ],
)
def test_bad_input_ends_with_two_and_one_line(client, arguments, message):
    result = backfill(client, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
