"""A project that runs under seeds, and what becomes of its runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import mlflow
from mlflow.tracking import MlflowClient

TRAIN = """
import os, pathlib, sys, time
seed = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["TRUEUP_SEED"])
def wait_to_be_stopped():
    pathlib.Path(f"pid_{seed}").write_text(str(os.getpid()))
    time.sleep(600)
if seed == 13:
    sys.exit("seed 13 is unlucky")
if seed == 99:  # one that never gets to its run
    wait_to_be_stopped()
import mlflow
with mlflow.start_run():
    mlflow.log_metric("log_loss", 0.5 + seed / 10)
    if seed == 98:
        wait_to_be_stopped()
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


def run_here(config: dict) -> None:
    mlflow.projects.run(
        ".", backend="trueup-seeds", backend_config=config, env_manager="local", synchronous=False
    )


def wait_for_seed(path: Path, process: subprocess.Popen | None = None) -> int:
    """Return the process id of a seed, once its training has started."""
    deadline = time.monotonic() + 300.0
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.1)
    return int(path.read_text())


def wait_until_gone(pid: int) -> None:
    """Return once a seed that would sleep for ten minutes has ended."""
    deadline = time.monotonic() + 300.0
    while _is_there(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
