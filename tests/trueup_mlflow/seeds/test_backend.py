"""The project backend runs a real project in real processes against a real store."""

from __future__ import annotations

import signal
import subprocess

import pytest
from mlflow.exceptions import ExecutionException
from tests.trueup_mlflow.seeds.seeded import (
    DECLARED,
    UNDECLARED,
    parent_and_children,
    run_here,
    wait_for_seed,
    wait_until_gone,
)

from trueup_mlflow.seeds import backend
from trueup_mlflow.seeds.backend import SeedsConfig

pytestmark = pytest.mark.usefixtures("quick_programs")


@pytest.fixture
def run_project(project_command, project_place):
    """Return a function that runs a project to its end."""
    place, client = project_place

    def run(*arguments):
        command = project_command(*arguments)
        return subprocess.run(command, capture_output=True, text=True, **place), client

    return run


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


@pytest.mark.parametrize(
    ("number", "seeds"),
    [
        pytest.param(signal.SIGINT, [98, 99], id="SIGINT in a run"),
        pytest.param(signal.SIGTERM, [99, 98], id="SIGTERM before it"),
    ],
)
def test_interrupted_command_kills_its_seeds_and_the_parent(start_project, tmp_path, number, seeds):
    process, client = start_project(DECLARED, {"seeds": seeds})
    pid = wait_for_seed(tmp_path / f"pid_{seeds[0]}", process)
    process.send_signal(number)
    try:
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    parent, children = parent_and_children(client)
    assert parent.info.status == "KILLED"
    assert [run.info.status for run in children] == ["KILLED"]
    wait_until_gone(pid)


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
    wait_until_gone(int((tmp_path / "pid_99").read_text()))


def test_exception_in_the_summary_fails_the_parent(here, monkeypatch):
    def fail(parent_run_id):
        raise OSError("the store is full")

    monkeypatch.setattr(backend, "log_seed_summary", fail)
    with pytest.raises(OSError, match="the store is full"):
        run_here({"seeds": [0]})
    parent, children = parent_and_children(here)
    assert parent.info.status == "FAILED"
    assert [run.info.status for run in children] == ["FINISHED"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, SeedsConfig((0, 1, 2, 3, 4))),
        ({"seeds": 2, "workers": 3}, SeedsConfig((0, 1), 3)),
        ({"seeds": [7, 3]}, SeedsConfig((7, 3))),
        ({"seeds": 2, "executor": "dask://a:1"}, SeedsConfig((0, 1), 2, "dask://a:1")),
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
        ({"seed": 2}, r"no other keys than \['executor', 'seeds', 'workers'\]; got \['seed'\]"),
        ({"executor": "host:8786"}, "executor must be the address of a cluster; got 'host:8786'"),
    ],
)
def test_config_that_makes_no_sense_is_refused(config, message):
    with pytest.raises(ExecutionException, match=message):
        SeedsConfig.read(config)
