"""A password in the address of a store reaches no tag, parameter, artifact, warning or output."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import mlflow
import numpy as np
import optuna
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from tests.trueup_mlflow.conftest import EXPERIMENT
from tests.warm import PYTHON

from trueup.calibrators import ShiftCalibrator, compare_calibrators
from trueup.errors import TrueupWarning
from trueup.resampling import generalization_error
from trueup_cli.app import app
from trueup_mlflow import (
    compare_runs,
    log_calibrators,
    log_evaluation,
    log_predictions,
    log_resampling,
    log_study,
)
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, report_study

SECRET = "Ter2"
QUOTED, TYPED = f"hun%2F{SECRET}", f"hun/{SECRET}"
Y, P = np.tile([0, 1], 60), np.linspace(0.05, 0.95, 120)


@pytest.fixture
def secured(server, monkeypatch):
    """The address of the server with a user and a password, which it doesn't ask for."""
    uri = server.uri.replace("http://", f"http://me:{QUOTED}@")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return server


def everything_of(run_id: str, folder: Path) -> str:
    client = MlflowClient()
    run = client.get_run(run_id)
    found = [run.data.tags, run.data.params, run.inputs.to_dictionary()]
    local = Path(client.download_artifacts(run_id, "", str(folder)))
    found += [path.read_bytes() for path in local.rglob("*") if path.is_file()]
    return repr(found)


def test_nothing_that_a_run_gains_holds_the_password(secured, tmp_path):
    data = mlflow.data.from_numpy(P, name="validation")
    with warnings.catch_warnings(record=True) as caught, mlflow.start_run() as run:
        warnings.simplefilter("always", TrueupWarning)
        log_evaluation(Y, P, fields={"site": Y}, figures=True, dataset=data)
        log_predictions(Y, P, name="v")
        log_evaluation(np.ones(20), np.full(20, 0.5), prefix="undefined_")
        secured.fault = lambda path, _: 500 if path.endswith("log-batch") else None
        log_evaluation(Y, P, prefix="refused_")
        secured.fault = lambda _path, _body: None
    assert len(caught) >= 2
    assert SECRET not in everything_of(run.info.run_id, tmp_path)
    assert SECRET not in repr([str(one.message) for one in caught])


@pytest.mark.parametrize(
    "address",
    [
        f"http://me:{TYPED}@127.0.0.1:9/",
        f"http://127.0.0.1:9/?token={SECRET}&a=1",
        f"http://{SECRET}@127.0.0.1:9",
        f"nosuch://me:{TYPED}@host/db",
    ],
)
def test_a_tracking_store_that_gives_no_answer_is_named_without_the_password(address, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    result = CliRunner().invoke(app, ["monitor", "status", "--tracking-uri", address])
    mlflow.set_tracking_uri(None)
    assert result.exit_code != 0
    assert SECRET not in result.output


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql+psycopg://me:{TYPED}@127.0.0.1:9/db",
        f"postgresql+psycopg://127.0.0.1:9/db?user=me&password={SECRET}",
        f"nosuch://me:{TYPED}@host/db",
    ],
)
def test_a_study_storage_that_gives_no_answer_is_named_without_the_password(address):
    tuned = CliRunner().invoke(app, ["tune", "report", "--storage", address, "--study-name", "s"])
    assert tuned.exit_code == 2
    assert SECRET not in tuned.output


def test_the_command_prints_no_password(secured, tmp_path):
    rows = pd.DataFrame({"y": Y, "p": P})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    start = "from trueup_cli import main; main()"
    command = [PYTHON, "-c", start, "evaluate", str(tmp_path / "rows.csv")]
    command += ["--target", "y", "--proba", "p", "--experiment", EXPERIMENT]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert SECRET not in run.stdout + run.stderr
    assert run.returncode == 0, run.stderr


def test_an_unexpected_traceback_is_printed_without_the_password():
    failing = f"raise RuntimeError('postgresql://me:{TYPED}@host/db')"
    start = f"from trueup_cli.app import app; app.main = lambda **_: exec({failing!r})"
    command = [PYTHON, "-c", f"{start}; from trueup_cli import main; main()"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "Traceback" in run.stderr
    assert "me:***@host/db" in run.stderr
    assert SECRET not in run.stderr


@pytest.mark.filterwarnings("ignore::trueup.errors.TrueupWarning")
def test_nothing_in_a_store_holds_a_password_that_was_given_to_us(client, tmp_path):
    url = f"postgresql://me:{TYPED}@host/db"
    rng = np.random.default_rng(0)
    table = compare_calibrators(
        Y, P, {"site": Y}, calibrators={"shift": ShiftCalibrator()}, field="site", shuffle=True
    )
    estimate = generalization_error(LogisticRegression(), rng.normal(size=(120, 1)), Y, KFold(3))
    study = optuna.create_study(study_name=url, pruner=SeedRacePruner(n_configs=2))
    study.optimize(
        SeedObjective(
            lambda trial, seed: len(trial.suggest_categorical("db", [url, f"{url}2"])) + seed,
            seeds=SeedList(3, confirm=1),
        ),
        n_trials=2,
    )
    log_study(report_study(study), experiment_name="studies", prefix="val_")
    log_study(report_study(study), experiment_name=EXPERIMENT, prefix=url, nested_seeds=True)
    with mlflow.start_run():
        log_evaluation(Y, P, prefix=url, fields={url: Y})
        log_predictions(Y, P, prefix=url, fields={"site": Y})
        log_resampling(estimate, run_name=url, prefix=url)
        log_calibrators(table, prefix=url)
    log_resampling(estimate, run_name=url)
    for model in "ab":
        for seed in range(6):
            with mlflow.start_run():
                mlflow.log_params({"model": model, "seed": seed})
                mlflow.log_metric("m", float(seed + (model == "a")))
    arms = [f"params.model = '{model}' and attributes.run_name != '{url}'" for model in "ab"]
    compare_runs(*arms, metric="m", candidate_name=url, experiment_names=[EXPERIMENT])
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) > 5
    assert [path for path in stored if SECRET.encode() in path.read_bytes()] == []
    assert [path for path in stored if SECRET in str(path)] == []
