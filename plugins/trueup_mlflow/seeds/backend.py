"""The project backend ``trueup-seeds``: one project, several seeds, one parent run.

``mlflow run . --backend trueup-seeds --backend-config '{"seeds": 5, "workers": 1}'`` makes a child
run of each seed, waits for all of them, summarises their metrics on the parent and prints the
summary. ``"executor": "dask://host:8786"`` runs them on the workers of a cluster. Each child is
what ``mlflow run`` makes of the entry point, or an ``mlflow run`` of its own where that builds an
environment, so that environment managers and project code behave as always.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import mlflow
from mlflow.entities import RunStatus
from mlflow.exceptions import ExecutionException
from mlflow.projects.backend.abstract_backend import AbstractBackend
from mlflow.projects.submitted_run import SubmittedRun
from mlflow.projects.utils import (
    PROJECT_ENV_MANAGER,
    fetch_and_validate_project,
    get_run_env_vars,
)
from mlflow.tracking import MlflowClient

from trueup.redact import without_credentials
from trueup_mlflow.context import AUTOLOG_VARIABLE, SEED_VARIABLE
from trueup_mlflow.seeds.findings import seed_findings, seed_table
from trueup_mlflow.seeds.log_seeds import log_seed_summary, seed_outcomes
from trueup_mlflow.seeds.project import SEED_PARAMETER, Place, SeededProject, SeedsConfig
from trueup_mlflow.seeds.seed_processes import (
    SeedCommand,
    end_abandoned,
    ends_cleanly_when_terminated,
    this_process,
)
from trueup_mlflow.write.failures import told
from trueup_mlflow.write.items import PROCESS_TAG, ROLE_TAG, SEED_PARENT_ROLE
from trueup_mlflow.write.runs import log_params, mark_as_model_training

_POLL = 0.5  # seconds
_FINISHED = str(RunStatus.to_string(RunStatus.FINISHED))
_FAILED = str(RunStatus.to_string(RunStatus.FAILED))
_KILLED = str(RunStatus.to_string(RunStatus.KILLED))


class SeedsRun(SubmittedRun):
    """The parent run, which has ended when MLflow gets to see it."""

    def __init__(self, parent_run_id: str) -> None:
        self._run_id = parent_run_id

    @property
    def run_id(self) -> str:
        return self._run_id

    def wait(self) -> bool:
        return True

    def get_status(self) -> str:
        return _FINISHED

    def cancel(self) -> None:
        """Do nothing: the seeds have ended."""


class SeedsBackend(AbstractBackend):
    """Runs one project under several seeds."""

    def run(
        self,
        project_uri: str,
        entry_point: str,
        params: Mapping[str, Any],
        version: str | None,
        backend_config: Mapping[str, Any],
        tracking_uri: str,  # noqa: ARG002 - part of MLflow's interface; the client knows it
        experiment_id: str,
    ) -> SeedsRun:
        """Run every seed, summarise them on the parent and return it.

        Raises ExecutionException if a seed failed. Nobody waits for a plugin's run, so raising is
        the one way to make ``mlflow run`` exit with 1; the seeds that finished are summarised
        before.
        """
        config = SeedsConfig.read(backend_config)
        params = {name: value for name, value in (params or {}).items() if name != SEED_PARAMETER}
        project = SeededProject(
            uri=project_uri,
            work_dir=fetch_and_validate_project(project_uri, version, entry_point, params),
            entry_point=entry_point,
            params=params,
            version=version,
            experiment_id=experiment_id,
            env_manager=backend_config.get(PROJECT_ENV_MANAGER),
        )
        if config.executor is not None and not project.runs_as_it_is():
            raise ExecutionException(
                "--env-manager must be local with executor, and the project one without "
                f"docker_env; got {project.env_manager!r}. The workers bring the environment: "
                "install what the project needs there."
            )
        with suppress(Exception), told("parents whose backend was killed were not looked for"):
            end_abandoned(MlflowClient(), [experiment_id])
        parent_run_id = _create_parent(project, len(config.seeds))
        status = _KILLED  # of the parent, unless we get to the end
        try:
            with ends_cleanly_when_terminated(), config.place(parent_run_id) as place:
                failed = _run_all(project, config, parent_run_id, place)
            log_seed_summary(parent_run_id)
            status = _FAILED if failed else _FINISHED
        except Exception:
            status = _FAILED
            raise
        finally:  # after Ctrl-C as well
            MlflowClient().set_terminated(parent_run_id, status)
        _print_summary(parent_run_id, config, failed)
        if failed:
            raise ExecutionException(
                f"seeds {failed} failed; the other seeds are summarised on run {parent_run_id}"
            )
        return SeedsRun(parent_run_id)


def seeds_backend() -> SeedsBackend:
    """Return the backend; MLflow's entry point."""
    return SeedsBackend()


def _create_parent(project: SeededProject, n_seeds: int) -> str:
    client = MlflowClient()
    mark_as_model_training(client, project.experiment_id)
    run = client.create_run(
        project.experiment_id,
        run_name=project.name(n_seeds),
        tags={
            ROLE_TAG: SEED_PARENT_ROLE,
            PROCESS_TAG: this_process(),
            "mlflow.source.type": "PROJECT",
            "mlflow.source.name": without_credentials(project.uri),
            "mlflow.project.entryPoint": project.entry_point,
        },
    )
    log_params(client, run.info.run_id, project.params)
    return str(run.info.run_id)


def _run_all(
    project: SeededProject,
    config: SeedsConfig,
    parent_run_id: str,
    place: Place,
) -> list[int]:
    """Run each seed and return those that failed; an exception or a signal stops all of them.

    Where an environment is built the first one runs alone: all the others use what it has built.
    """

    def succeeded(seed: int) -> bool:
        return _run_seed(project, seed, parent_run_id, place)

    alone = 0 if project.runs_as_it_is() else 1
    pool = ThreadPoolExecutor(config.workers)
    outcomes = []
    try:
        for seeds in (config.seeds[:alone], config.seeds[alone:]):
            outcomes += _results([pool.submit(succeeded, seed) for seed in seeds])
    except BaseException:
        # First, or a seed that is stopped makes room for the next one.
        pool.shutdown(wait=False, cancel_futures=True)
        place.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return [seed for seed, success in zip(config.seeds, outcomes, strict=True) if not success]


def _results(futures: Sequence[Future[bool]]) -> list[bool]:
    """Return the results, or raise the first exception; awake often enough to take a Ctrl-C."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=_POLL, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    return [future.result() for future in futures]


def _run_seed(project: SeededProject, seed: int, parent_run_id: str, place: Place) -> bool:
    run_id = project.create_run(seed, parent_run_id)
    variables = {
        **get_run_env_vars(run_id, project.experiment_id),
        "MLFLOW_TRACKING_URI": mlflow.get_tracking_uri(),
        SEED_VARIABLE: str(seed),
        # Seeds the generators of a project that declares no seed, and logs calibrated twins.
        AUTOLOG_VARIABLE: os.environ.get(AUTOLOG_VARIABLE, "1"),
    }
    folder = project.work_dir if project.runs_as_it_is() else None
    words = tuple(project.command(seed, run_id))
    success = False
    try:
        success = place.run(SeedCommand(seed, words, variables, folder), run_id)
    finally:
        _end_run(run_id, success, place.stopped)
    return success


def _end_run(run_id: str, success: bool, stopped: bool) -> None:
    client = MlflowClient()
    status = RunStatus.from_string(client.get_run(run_id).info.status)
    if stopped and not success:
        client.set_terminated(run_id, _KILLED)
    elif not RunStatus.is_terminated(status):  # the child died before it could say so
        client.set_terminated(run_id, _FINISHED if success else _FAILED)


def _print_summary(parent_run_id: str, config: SeedsConfig, failed: list[int]) -> None:
    n = len(config.seeds)
    print(f"parent run {parent_run_id}: {n - len(failed)} of {n} seeds finished")
    client = MlflowClient()
    parent = client.get_run(parent_run_id)
    notes = seed_findings(seed_outcomes(parent, client)).notes
    print("\n".join([seed_table(parent.data.metrics), *notes]), flush=True)
