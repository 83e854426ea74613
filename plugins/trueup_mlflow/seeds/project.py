"""What was asked of ``mlflow run``: a project under several seeds, how many at once, and where."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
from mlflow.exceptions import ExecutionException
from mlflow.projects import utils as project_utils
from mlflow.projects.utils import get_entry_point_command, get_or_create_run, load_project
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_PROJECT_BACKEND, MLFLOW_RUN_NAME

from trueup.errors import InvalidInputError
from trueup.executor import check_address, executor_at
from trueup.redact import without_credentials
from trueup_mlflow.seeds.elsewhere import SeedsElsewhere
from trueup_mlflow.seeds.seed_processes import SeedProcesses
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


Place = SeedProcesses | SeedsElsewhere
"""What runs the command of a seed: this machine, or a cluster."""

_CONFIG_KEYS = {"seeds", "workers", "executor"}
_KEYS_OF_MLFLOW = {  # which `mlflow run` puts into the same dictionary, in later versions too
    key for name, key in vars(project_utils).items() if name.startswith("PROJECT_")
}
_MOST_SEEDS = 100_000


@dataclass(frozen=True)
class SeedsConfig:
    """What ``--backend-config`` says: the seeds, how many run at once, and on which cluster."""

    seeds: tuple[int, ...]
    workers: int = 1
    executor: str | None = None

    @classmethod
    def read(cls, backend_config: Mapping[str, Any]) -> SeedsConfig:
        """Read ``{"seeds": 5 or [3, 7], "workers": 1, "executor": "dask://host:8786"}``.

        Five seeds by default, one at once here, and all at once on a cluster.

        Raises ExecutionException if a key is unknown or a value not usable; MLflow shows the
        message and exits with 1.
        """
        if not isinstance(backend_config, Mapping):
            raise ExecutionException(
                f"--backend-config must be a JSON object; got {backend_config!r}. "
                "Pass '{\"seeds\": 5}'."
            )
        unknown = sorted(set(backend_config) - _CONFIG_KEYS - _KEYS_OF_MLFLOW)
        if unknown:
            raise ExecutionException(
                f"--backend-config must have no other keys than {sorted(_CONFIG_KEYS)}; "
                f"got {unknown}. Check the spelling."
            )
        seeds = _read_seeds(backend_config.get("seeds", 5))
        executor = backend_config.get("executor")
        if executor is not None:
            with _shown_by_mlflow():
                check_address(executor)
        workers = backend_config.get("workers", 1 if executor is None else len(seeds))
        if not _is_count(workers):
            raise ExecutionException(
                f"workers must be a positive number; got {workers!r}. "
                "Pass the number of seeds that may run at once."
            )
        return cls(seeds, workers, executor)

    @contextmanager
    def place(self, parent_run_id: str) -> Iterator[Place]:
        if self.executor is None:
            yield SeedProcesses()
            return
        with _shown_by_mlflow(), executor_at(self.executor) as cluster:
            yield SeedsElsewhere(cluster, parent_run_id, mlflow.get_tracking_uri())


@contextmanager
def _shown_by_mlflow() -> Iterator[None]:
    """Raise what MLflow shows as a sentence, and not as a traceback."""
    try:
        yield
    except (InvalidInputError, ImportError) as error:
        raise ExecutionException(str(error)) from error


def _read_seeds(seeds: Any) -> tuple[int, ...]:
    if _is_count(seeds) and seeds <= _MOST_SEEDS:
        return tuple(range(seeds))
    if not isinstance(seeds, list) or not seeds or not all(map(_is_integer, seeds)):
        raise ExecutionException(
            f"seeds must be a positive number or a list of integers; got {seeds!r}. "
            "Pass --backend-config '{\"seeds\": 5}'."
        )
    if len(set(seeds)) != len(seeds):
        raise ExecutionException(f"seeds must differ; got {seeds!r}. Name each seed once.")
    return tuple(seeds)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return _is_integer(value) and value > 0  # type: ignore[operator] # it is an integer
