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
def project_command(tmp_path):
    """Return a function that writes a project; it gives the command that runs it under seeds."""

    def write(entry_point: str, config: dict, *options: str) -> list[str]:
        write_project(tmp_path, entry_point)
        return [
            *(sys.executable, "-c", MLFLOW, "run", ".", "--env-manager", "local"),
            *("--backend", "trueup-seeds", "--backend-config", json.dumps(config), *options),
        ]

    return write


@pytest.fixture
def project_place(tmp_path):
    """Folder and environment of the command, and the client of its store."""
    uri = new_database(tmp_path)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "TRUEUP_"))}
    environment = {**inherited, "MLFLOW_TRACKING_URI": uri, "PATH": path_with_this_python()}
    return {"cwd": tmp_path, "env": environment}, MlflowClient(uri)


@pytest.fixture
def start_project(project_command, project_place):
    """Return a function that starts a project under seeds; it gives the process and the client."""
    place, client = project_place
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def start(*arguments):
        return subprocess.Popen(project_command(*arguments), **place, **pipes), client

    return start


@pytest.fixture
def here(client, tmp_path, monkeypatch):
    """The client of the store that ``run_here`` writes to; the environment names the experiment."""
    monkeypatch.setenv("PATH", path_with_this_python())
    write_project(tmp_path, DECLARED)
    return client
