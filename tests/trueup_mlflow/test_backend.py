"""The project backend runs a real project in real processes against a real store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow.exceptions import ExecutionException
from mlflow.tracking import MlflowClient

from trueup_mlflow.backend import SeedsConfig

TRAIN = """
import os, sys
import mlflow
seed = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["TRUEUP_SEED"])
if seed == 13:
    sys.exit("seed 13 is unlucky")
with mlflow.start_run():
    mlflow.log_metric("log_loss", 0.5 + seed / 10)
"""
DECLARED = "{parameters: {seed: {type: int, default: 0}}, command: 'python train.py {seed}'}"
UNDECLARED = "{command: 'python train.py'}"


@pytest.fixture
def run_project(tmp_path):
    """Return a function that runs a project under seeds; it gives the process and the client."""
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "TRUEUP_"))}
    environment = {
        **inherited,
        "MLFLOW_TRACKING_URI": uri,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(entry_point: str, config: dict, *options: str):
        (tmp_path / "train.py").write_text(TRAIN)
        (tmp_path / "MLproject").write_text(f"name: p\nentry_points:\n  main: {entry_point}\n")
        command = [
            *(sys.executable, "-m", "mlflow", "run", ".", "--env-manager", "local"),
            *("--backend", "trueup-seeds", "--backend-config", json.dumps(config), *options),
        ]
        process = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return process, MlflowClient(uri)

    return run


def parent_and_children(client: MlflowClient):
    runs = client.search_runs(["0"])
    parent = next(run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = [run for run in runs if run is not parent]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    return parent, sorted(children, key=lambda run: int(run.data.tags["trueup.seed"]))


def test_seeds_are_children_and_their_metrics_are_summarised_on_the_parent(run_project):
    process, client = run_project(DECLARED, {"seeds": [0, 1, 2], "workers": 2}, "-P", "seed=9")
    assert process.returncode == 0, process.stderr
    parent, children = parent_and_children(client)
    assert [run.data.metrics for run in children] == [
        {"log_loss": pytest.approx(0.5 + seed / 10)} for seed in range(3)
    ]
    assert [run.data.params["seed"] for run in children] == ["0", "1", "2"]
    assert "seed" not in parent.data.params
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["trueup.role"] == "seed_parent"
    half_width = 4.302652729749464 * 0.1 / 3**0.5  # t quantile with 2 degrees of freedom
    assert parent.data.metrics == pytest.approx(
        {
            "log_loss": 0.6,
            "log_loss_std": 0.1,
            "log_loss_low": 0.6 - half_width,
            "log_loss_high": 0.6 + half_width,
            "n_seeds": 3.0,
        }
    )


def test_failed_seed_fails_the_command_and_leaves_the_others_summarised(run_project):
    process, client = run_project(UNDECLARED, {"seeds": [1, 13]})
    assert process.returncode == 1
    assert "seeds [13] failed" in process.stderr
    parent, children = parent_and_children(client)
    assert [run.info.status for run in children] == ["FINISHED", "FAILED"]
    assert parent.info.status == "FAILED"
    assert parent.data.metrics == {"log_loss": 0.6, "n_seeds": 1.0}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, SeedsConfig((0, 1, 2, 3, 4))),
        ({"seeds": 2, "workers": 3}, SeedsConfig((0, 1), 3)),
        ({"seeds": [7, 3]}, SeedsConfig((7, 3))),
    ],
)
def test_config_is_read(config, expected):
    assert SeedsConfig.read(config) == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"seeds": 0}, "seeds must be a positive number or a list of integers; got 0"),
        ({"seeds": []}, r"seeds must be a positive number or a list of integers; got \[\]"),
        ({"seeds": [0.5]}, r"seeds must be a positive number or a list of integers; got \[0.5\]"),
        ({"seeds": True}, "seeds must be a positive number or a list of integers; got True"),
        ({"seeds": [1, 1]}, r"seeds must differ; got \[1, 1\]"),
        ({"seeds": 2, "workers": 0}, "workers must be a positive number; got 0"),
    ],
)
def test_config_that_makes_no_sense_is_refused(config, message):
    with pytest.raises(ExecutionException, match=message):
        SeedsConfig.read(config)
