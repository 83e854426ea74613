"""Seeds on the workers of a real Dask cluster, whose processes are not ours, and of Spark."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import mlflow
import pytest
from mlflow.exceptions import ExecutionException
from tests.spark_session import local_session, needs_spark
from tests.trueup_mlflow.seeds.seeded import (
    DECLARED,
    parent_and_children,
    run_here,
    wait_for_seed,
    wait_until_gone,
)

from trueup_mlflow.seeds.elsewhere import SeedJob, run_on_worker
from trueup_mlflow.seeds.seed_processes import SeedCommand

pytestmark = [
    pytest.mark.usefixtures("quick_programs"),
    pytest.mark.filterwarnings("ignore"),  # Dask and its event loops warn about themselves
]


@pytest.fixture(scope="module")
def scheduler():
    """The address of two workers, each a process of its own."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
    )
    with cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_seeds_run_on_the_workers_and_failures_are_those_of_processes(scheduler, here, capfd):
    with pytest.raises(ExecutionException, match=r"seeds \[13\] failed"):
        run_here({"seeds": [1, 2, 13], "executor": scheduler})
    parent, children = parent_and_children(here)
    assert parent.info.status == "FAILED"
    assert [run.info.status for run in children] == ["FINISHED", "FINISHED", "FAILED"]
    assert [run.data.metrics for run in children[:2]] == [{"log_loss": 0.6}, {"log_loss": 0.7}]
    processes = {run.data.tags["trueup.process"].split(":")[1] for run in children}
    assert str(os.getpid()) not in processes
    assert parent.data.metrics["n_seeds"] == 2.0
    assert "seed 13 is unlucky" in capfd.readouterr().err


def test_an_interrupted_command_kills_its_seeds_on_the_workers(scheduler, start_project, tmp_path):
    process, client = start_project(DECLARED, {"seeds": [98, 99], "executor": scheduler})
    pids = [wait_for_seed(tmp_path / f"pid_{seed}", process) for seed in (98, 99)]
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    parent, children = parent_and_children(client)
    assert [run.info.status for run in (parent, *children)] == ["KILLED"] * 3
    for pid in pids:
        wait_until_gone(pid)


def test_a_worker_that_dies_loses_its_seed_and_no_other_takes_the_run(scheduler, here, tmp_path):
    def kill_worker():
        wait_for_seed(tmp_path / "pid_99")
        _, (child,) = parent_and_children(here)
        os.kill(int(child.data.tags["trueup.process"].split(":")[1]), signal.SIGKILL)

    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill_worker)
        with pytest.raises(ExecutionException, match=r"seeds \[99\] failed"):
            run_here({"seeds": [99], "executor": scheduler})
        killed.result()
    _, (child,) = parent_and_children(here)
    assert child.info.status == "FAILED"
    os.kill(int((tmp_path / "pid_99").read_text()), signal.SIGKILL)


def test_what_a_worker_lacks_is_named_with_what_to_do(scheduler, here, monkeypatch):
    with pytest.raises(ExecutionException, match="--env-manager must be local with executor"):
        mlflow.projects.run(
            ".",
            backend="trueup-seeds",
            backend_config={"seeds": 2, "executor": scheduler},
            env_manager="virtualenv",
            synchronous=False,
        )
    job = SeedJob(SeedCommand(0, ("true",), {}, "/nowhere"), "r", "p", here.tracking_uri)
    with pytest.raises(ExecutionException, match="folder must be there on worker"):
        run_on_worker(job)
    job = replace(job, command=replace(job.command, folder="."))
    with pytest.raises(ExecutionException, match=r"within reach on worker .*id=r not found"):
        run_on_worker(job)
    monkeypatch.setattr("trueup.executor._PATIENCE", 1)
    with pytest.raises(ExecutionException, match=r"that answers; got 'dask://127.0.0.1:9'"):
        run_here({"seeds": 1, "executor": "dask://127.0.0.1:9"})


@needs_spark
def test_seeds_run_on_the_workers_of_spark(here, tmp_path):
    with local_session(tmp_path, {}):  # getOrCreate finds it
        run_here({"seeds": [1, 2], "executor": "local[2]"})
    parent, children = parent_and_children(here)
    assert [run.info.status for run in (parent, *children)] == ["FINISHED"] * 3
    assert parent.data.metrics["log_loss"] == pytest.approx(0.65)
