"""A project that ``mlflow run`` fetched, and how one seed of it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
from mlflow.projects.utils import get_entry_point_command, get_or_create_run, load_project
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_PROJECT_BACKEND, MLFLOW_RUN_NAME

from trueup.redact import without_credentials
from trueup_mlflow.write.items import SEED_TAG

SEED_PARAMETER = "seed"


@dataclass(frozen=True)
class SeededProject:
    """What was asked of ``mlflow run``: a project in its folder, an entry point, parameters."""

    uri: str
    work_dir: str
    entry_point: str
    params: Mapping[str, Any]
    version: str | None
    experiment_id: str
    env_manager: str | None

    def seed_params(self, seed: int) -> dict[str, Any]:
        """Return the parameters of a seed; ``seed`` is one only where the entry point declares it.

        MLflow would append an undeclared parameter to the command, which may not know it.
        """
        entry_point = load_project(self.work_dir).get_entry_point(self.entry_point)
        declared = SEED_PARAMETER in entry_point.parameters
        return {**self.params, SEED_PARAMETER: seed} if declared else dict(self.params)

    def name(self, n_seeds: int) -> str:
        """Return a name that a person knows: the project, what was asked of it, and the seeds."""
        project = load_project(self.work_dir).name or Path(self.work_dir).resolve().name
        asked = [] if self.entry_point == "main" else [self.entry_point]
        asked += [f"{name}={value}" for name, value in self.params.items()]
        words = without_credentials(" ".join([project, *asked]))
        return f"{words}, {n_seeds} seed{'s' if n_seeds > 1 else ''}"

    def runs_as_it_is(self) -> bool:
        """Say whether the entry point runs in this environment, in the folder of the project."""
        on_databricks = mlflow.get_tracking_uri().startswith("databricks")
        is_local = self.env_manager == "local" and not load_project(self.work_dir).docker_env
        return is_local and not on_databricks and os.name == "posix"

    def create_run(self, seed: int, parent_run_id: str) -> str:
        run = get_or_create_run(
            None,
            self.uri,
            self.experiment_id,
            self.work_dir,
            self.version,
            self.entry_point,
            self.seed_params(seed),
        )
        client = MlflowClient()
        for tag, value in (
            (MLFLOW_PARENT_RUN_ID, parent_run_id),
            (MLFLOW_RUN_NAME, f"seed {seed}"),
            (SEED_TAG, str(seed)),
            (MLFLOW_PROJECT_BACKEND, "local"),
        ):
            client.set_tag(run.info.run_id, tag, value)
        return str(run.info.run_id)

    def command(self, seed: int, run_id: str) -> list[str]:
        """Return the command of a seed.

        Where the project runs in this environment it is the entry point's own: ``mlflow run`` would
        import for seconds to start the same.
        """
        if self.runs_as_it_is():
            params = {name: str(value) for name, value in self.seed_params(seed).items()}
            project = load_project(self.work_dir)
            return ["bash", "-c", *get_entry_point_command(project, self.entry_point, params, None)]
        words = [f"{name}={value}" for name, value in self.seed_params(seed).items()]
        return [
            *(sys.executable, "-m", "mlflow", "run", self.work_dir),
            *("--entry-point", self.entry_point, "--run-id", run_id),
            *(("--env-manager", self.env_manager) if self.env_manager else ()),
            *(part for word in words for part in ("--param-list", word)),
        ]
