from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database
from tests.warm import PYTHON

import trueup
from trueup._kernels import numpy_engine
from trueup_cli.doctor import doctor


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    uri = new_database(tmp_path_factory.mktemp("store"))
    MlflowClient(uri).create_experiment("tests")
    return uri


def run(uri, *arguments, **variables):
    return CliRunner().invoke(doctor, [*arguments, "--tracking-uri", uri], env=variables)


def make_run(uri, metrics, tags):
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tests").experiment_id
    run_id = client.create_run(experiment, tags=tags).info.run_id
    for key, value in metrics.items():
        client.log_metric(run_id, key, value)
    client.set_terminated(run_id)
    return run_id


def test_installation_switch_and_store_are_checked(uri):
    result = run(uri, TRUEUP_AUTOLOG="yes")
    assert result.exit_code == 0, result.output
    for word in ("trueup 0.1.0", "mlflow 3.", "TRUEUP_AUTOLOG=yes: autologging is on", "answers"):
        assert word in result.output


def test_a_build_without_the_gpu_is_found(uri):
    found = pytest.importorskip("xgboost").__version__
    assert f"ok    xgboost {found}" in run(uri).output


@pytest.mark.parametrize(
    ("asked", "why"),
    [("numpy", "as TRUEUP_ENGINE=numpy asks"), ("", "with gcc or clang here, install again")],
)
def test_numpy_in_place_of_the_loops_is_said_with_its_cause(uri, monkeypatch, asked, why):
    monkeypatch.setattr("trueup._kernels.engine", numpy_engine)
    line = f"note  numpy stands in for the loops in C: slower; {why}\n"
    assert line in run(uri, TRUEUP_ENGINE=asked).output


def test_switch_that_is_none_is_wrong(uri):
    result = run(uri, TRUEUP_AUTOLOG="enabled")
    assert result.exit_code == 1
    assert "wrong TRUEUP_AUTOLOG=enabled is none of 1, true, yes, on" in result.output


def test_store_that_does_not_answer_is_wrong(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    result = run("http://me:secret@127.0.0.1:9")
    assert result.exit_code == 1
    assert "does not answer" in result.output
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("metrics", "tags", "line"),
    [
        (
            {"loss": 0.5, "calibrated_loss": 0.4},
            {"trueup.coverage": "twins of loss."},
            "twins of loss.",
        ),
        ({"loss": 0.5, "calibrated_loss": 0.4}, {}, "twins of loss."),
        ({"loss": 0.5}, {}, "no twins: autologging was off"),
        ({"loss": 0.5}, {"trueup.coverage": "none of loss: why"}, "none of loss: why"),
        ({"loss": 0.5}, {"trueup.skipped.loss": "why"}, "trueup.skipped.loss: why"),
    ],
)
def test_finished_run_says_what_it_gained_and_fails_without_a_twin(uri, metrics, tags, line):
    result = run(uri, make_run(uri, metrics, tags))
    assert result.exit_code == (0 if "calibrated_loss" in metrics else 1)
    assert line in result.output


def test_store_that_no_run_has_made_yet_is_a_note_and_stays_away(tmp_path):
    result = run(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert "note  there is no store at sqlite:" in result.output
    assert not list(tmp_path.iterdir())


def test_run_that_is_not_there_is_bad_input(uri):
    result = run(uri, "nowhere")
    assert result.exit_code == 2
    assert "RUN_ID must be a run of the store" in result.output


def test_deleted_run_says_what_it_gained(uri):
    run_id = make_run(uri, {"loss": 0.5, "calibrated_loss": 0.4}, {})
    MlflowClient(uri).delete_run(run_id)
    result = run(uri, run_id)
    assert result.exit_code == 0, result.output
    assert "twins of loss." in result.output


def test_abandoned_parent_of_seeds_is_ended(uri):
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tests").experiment_id
    import socket

    tags = {"trueup.role": "seed_parent", "trueup.process": f"{socket.gethostname()}:999999999:1"}
    parent = client.create_run(experiment, tags=tags).info.run_id
    assert f"ended run {parent}" in run(uri).output
    assert client.get_run(parent).info.status == "KILLED"


def test_the_context_that_mlflow_loads_is_whole(tmp_path):
    uri = new_database(tmp_path)
    code = f"from trueup_cli.app import app; app(['doctor', '--tracking-uri', {uri!r}])"
    run = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    assert "Failure attempting to register" not in run.stderr


def test_findings_and_gains_are_told_as_json(uri):
    findings = json.loads(run(uri, "--json").output)
    assert {"mark": "ok", "text": f"trueup {trueup.__version__}, Python {_python()}"} in findings
    tags = {"trueup.skipped.loss": "why"}
    gained = json.loads(run(uri, make_run(uri, {"loss": 0.5}, tags), "--json").output)
    assert (gained["status"], gained["twins"], gained["skipped"]) == ("FINISHED", [], tags)


def _python():
    return ".".join(map(str, sys.version_info[:3]))


def test_late_twin_of_a_run_is_none_and_both_steps_are_said(uri):
    run_id = make_run(uri, {"loss": 0.5, "calibrated_loss": 0.4}, {})
    MlflowClient(uri).log_metric(run_id, "loss", 0.3, step=4)
    result = run(uri, run_id)
    assert result.exit_code == 1
    assert "calibrated_loss is late: it is of step 0, and loss of step 4" in result.output
