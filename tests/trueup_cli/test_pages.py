"""What ``trueup report`` refuses is said of its own options."""

from __future__ import annotations

import mlflow
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from tests.databases import new_database

from trueup_cli.app import app


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    uri = new_database(tmp_path_factory.mktemp("store"))
    client = MlflowClient(uri)
    run_id = client.create_run(client.create_experiment("clicks")).info.run_id
    client.log_metric(run_id, "log_loss", 0.4)
    client.set_terminated(run_id)
    return uri


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "SUBJECT must exist; got 'none'."),
        (["models:/x"], "SUBJECT must be models:/NAME/VERSION or models:/NAME@ALIAS; got"),
        (["models:/x/1"], "SUBJECT must be a monitored version; got 'models:/x/1'."),
        (
            ["models:/x/1", "--by", "params"],
            "SUBJECT must be an experiment where --metric, --by or --greater-is-better is given;",
        ),
        (["clicks", "--by", "rate"], "--by must be params, parents, param:NAME or tag:NAME; got"),
        (["clicks", "--by", "tag:x"], "--by must name what the runs have; got 'tag:x'."),
        (["clicks", "--metric", "auc"], "--metric must be a vanilla key of the runs; got 'auc'."),
        (
            ["clicks", "--output", "none/page.html"],
            "--output must be in a folder that exists; got 'none/page.html'.",
        ),
    ],
)
def test_a_refusal_names_the_option(uri, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = [] if "--output" in arguments else ["--output", "page.html"]
    before = mlflow.get_tracking_uri()
    result = CliRunner().invoke(app, ["report", *arguments, *output, "--tracking-uri", uri])
    assert (result.exit_code, result.output[:7]) == (2, "Error: ")
    assert result.output.removeprefix("Error: ").startswith(said)
    assert mlflow.get_tracking_uri() == before
    assert not (tmp_path / "page.html").exists()
