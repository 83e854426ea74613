"""The project backend runs a real project in real processes against a real store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import pytest
from mlflow.exceptions import ExecutionException
from mlflow.tracking import MlflowClient

from trueup_mlflow.seeds import backend
from trueup_mlflow.seeds.backend import SeedsConfig

TRAIN = """
import os, pathlib, sys, time
import mlflow
seed = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["TRUEUP_SEED"])
if seed == 13:
    sys.exit("seed 13 is unlucky")
with mlflow.start_run():
    mlflow.log_metric("log_loss", 0.5 + seed / 10)
    if seed >= 90:
        pathlib.Path(f"pid_{seed}").write_text(str(os.getpid()))
        time.sleep(600)
"""
DECLARED = "{parameters: {seed: {type: int, default: 0}}, command: 'python train.py {seed}'}"
UNDECLARED = "{command: 'python train.py'}"


# A shell that starts its jobs in the background lets them ignore SIGINT.
MLFLOW = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from mlflow.cli import cli
cli()
"""


@pytest.fixture
def start_project(database_template, tmp_path):
    """Return a function that starts a project under seeds; it gives the process and the client."""
    shutil.copy(database_template, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "TRUEUP_"))}
    environment = {
        **inherited,
        "MLFLOW_TRACKING_URI": uri,
        "PATH": path_with_this_python(),
    }

    def start(entry_point: str, config: dict, *options: str):
        write_project(tmp_path, entry_point)
        command = [
            *(sys.executable, "-c", MLFLOW, "run", ".", "--env-manager", "local"),
            *("--backend", "trueup-seeds", "--backend-config", json.dumps(config), *options),
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)
        return process, MlflowClient(uri)

    return start


@pytest.fixture
def run_project(start_project):
    """Return a function that runs a project to its end."""

    def run(*arguments):
        process, client = start_project(*arguments)
        stdout, stderr = process.communicate()
        code = process.returncode
        return subprocess.CompletedProcess(process.args, code, stdout, stderr), client

    return run


def path_with_this_python() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def write_project(folder: Path, entry_point: str) -> None:
    (folder / "train.py").write_text(TRAIN)
    (folder / "MLproject").write_text(f"name: p\nentry_points:\n  main: {entry_point}\n")


def parent_and_children(client: MlflowClient):
    everywhere = [experiment.experiment_id for experiment in client.search_experiments()]
    runs = client.search_runs(everywhere)
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
    printed = process.stdout.splitlines()[-3:]
    assert printed == [
        f"parent run {parent.info.run_id}: 3 of 3 seeds finished",
        "metric    vanilla      calibrated",
        "log_loss  0.60 ± 0.10  -",
    ]


def test_failed_seed_fails_the_command_and_leaves_the_others_summarised(run_project):
    process, client = run_project(UNDECLARED, {"seeds": [1, 13]})
    assert process.returncode == 1
    assert "seeds [13] failed" in process.stderr
    parent, children = parent_and_children(client)
    assert [run.info.status for run in children] == ["FINISHED", "FAILED"]
    assert parent.info.status == "FAILED"
    assert parent.data.metrics == {"log_loss": 0.6, "n_seeds": 1.0}
    assert f"parent run {parent.info.run_id}: 1 of 2 seeds finished" in process.stdout
    assert "log_loss  0.6      -" in process.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupted_command_kills_its_seeds_and_the_parent(start_project, tmp_path, number):
    process, client = start_project(DECLARED, {"seeds": [98, 99]})
    pid = wait_for_seed(tmp_path / "pid_98", process)
    process.send_signal(number)
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0
    parent, children = parent_and_children(client)
    assert parent.info.status == "KILLED"
    assert [run.info.status for run in children] == ["KILLED"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.fixture
def here(client, tmp_path, monkeypatch):
    """The client of the store that ``run_here`` writes to; the environment names the experiment."""
    monkeypatch.setenv("PATH", path_with_this_python())
    write_project(tmp_path, DECLARED)
    return client


def test_exception_while_seeds_run_stops_them_and_fails_the_parent(here, tmp_path, monkeypatch):
    create_run = backend.SeededProject.create_run

    def create_run_but_once(project, seed, parent_run_id):
        if seed == 1:
            wait_for_seed(tmp_path / "pid_99")
            raise OSError("the store is full")
        return create_run(project, seed, parent_run_id)

    monkeypatch.setattr(backend.SeededProject, "create_run", create_run_but_once)
    with pytest.raises(OSError, match="the store is full"):
        run_here({"seeds": [0, 99, 1], "workers": 2})
    parent, children = parent_and_children(here)
    assert parent.info.status == "FAILED"
    assert [run.info.status for run in children] == ["FINISHED", "KILLED"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid_99").read_text()), 0)


def test_exception_in_the_summary_fails_the_parent(here, monkeypatch):
    def fail(parent_run_id):
        raise OSError("the store is full")

    monkeypatch.setattr(backend, "log_seed_summary", fail)
    with pytest.raises(OSError, match="the store is full"):
        run_here({"seeds": [0]})
    parent, children = parent_and_children(here)
    assert parent.info.status == "FAILED"
    assert [run.info.status for run in children] == ["FINISHED"]


def run_here(config: dict) -> None:
    mlflow.projects.run(
        ".", backend="trueup-seeds", backend_config=config, env_manager="local", synchronous=False
    )


def wait_for_seed(path: Path, process: subprocess.Popen | None = None) -> int:
    """Return the process id of a seed, once its training has started."""
    deadline = time.monotonic() + 120.0
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.1)
    return int(path.read_text())


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
        ({"seed": 2}, r"no other keys than \['seeds', 'workers'\]; got \['seed'\]"),
    ],
)
def test_config_that_makes_no_sense_is_refused(config, message):
    with pytest.raises(ExecutionException, match=message):
        SeedsConfig.read(config)
