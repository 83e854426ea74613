"""Where a result is to be logged is looked up before the work, and what it is logged to is said."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database
from tests.trueup_cli.tune_script import arguments as tune_arguments

from trueup_cli.app import app

COMMANDS = {
    "evaluate": ["rows.csv", "--target", "none", "--proba", "p"],
    "calibrate": ["rows.csv", "--target", "none", "--proba", "p", "--compare", "--field", "x"],
    "resample": ["sklearn.linear_model:LogisticRegression", "rows.csv", "--target", "none"],
    "tune": [*tune_arguments(), "--study-name", "untouched"],
}
"""Each would fail in its work: there is no column of that name, and no study is to be made."""
RUN_COMMANDS = [name for name in COMMANDS if name != "tune"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    uri = new_database(tmp_path_factory.mktemp("store"))
    client = MlflowClient(uri)
    client.create_experiment("kept")
    client.delete_experiment(client.create_experiment("deleted"))
    return uri


def invoke(command, *more):
    return CliRunner().invoke(app, [command, *COMMANDS[command], *more])


@pytest.fixture
def rows(folder):
    (folder / "rows.csv").write_text("click,p\n" + "0,0.3\n1,0.6\n" * 60)
    return folder


@pytest.mark.parametrize("command", RUN_COMMANDS)
def test_an_unknown_run_is_refused_before_the_work(rows, uri, command):
    result = invoke(command, "--log-to-mlflow", "0" * 32, "--tracking-uri", uri)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --log-to-mlflow must be a run of the store; got '000")


@pytest.mark.parametrize("command", RUN_COMMANDS)
def test_a_deleted_run_is_refused_before_the_work(rows, uri, command):
    client = MlflowClient(uri)
    run_id = client.create_run(client.get_experiment_by_name("kept").experiment_id).info.run_id
    client.delete_run(run_id)
    result = invoke(command, "--log-to-mlflow", run_id, "--tracking-uri", uri)
    assert result.exit_code == 2
    assert f"got '{run_id}', which was deleted. Restore it: mlflow runs restore" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_deleted_experiment_is_refused_before_the_work(rows, uri, command):
    result = invoke(command, "--experiment-name", "deleted", "--tracking-uri", uri)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --experiment-name must be an experiment that is not")
    assert list(rows.glob("*.journal")) == []


@pytest.mark.parametrize("command", RUN_COMMANDS)
@pytest.mark.parametrize("scheme", ["sqlite:///", ""])
def test_work_that_fails_makes_no_store(rows, command, scheme):
    place = rows / "not_yet"
    result = invoke(command, "--experiment-name", "new", "--tracking-uri", f"{scheme}{place}")
    assert result.exit_code == 2
    assert "'none'" in result.stderr
    assert not place.exists()


def test_a_new_run_says_that_nothing_was_trained_in_it_and_one_that_is_named_stays(rows, uri):
    client = MlflowClient(uri)
    own = client.create_run(client.get_experiment_by_name("kept").experiment_id).info.run_id
    options = ["rows.csv", "--target", "click", "--proba", "p", "--tracking-uri", uri]
    for place in (["--experiment-name", "scores"], ["--log-to-mlflow", own]):
        assert CliRunner().invoke(app, ["evaluate", *options, *place]).exit_code == 0
    (made,) = client.search_runs([client.get_experiment_by_name("scores").experiment_id])
    assert made.data.tags["trueup.role"] == "scoring"
    named = client.get_run(own)
    assert "calibrated_log_loss" in named.data.metrics
    assert "trueup.role" not in named.data.tags
