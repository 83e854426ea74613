"""Projects on a real store: in a process of their own, or in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from mlflow.tracking import MlflowClient
from tests.databases import new_database
from tests.trueup_mlflow.seeds.seeded import (
    DECLARED,
    MLFLOW,
    path_with_this_python,
    write_project,
)


@pytest.fixture
def start_project(tmp_path):
    """Return a function that starts a project under seeds; it gives the process and the client."""
    uri = new_database(tmp_path)
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
def here(client, tmp_path, monkeypatch):
    """The client of the store that ``run_here`` writes to; the environment names the experiment."""
    monkeypatch.setenv("PATH", path_with_this_python())
    write_project(tmp_path, DECLARED)
    return client
