"""What ``--backend-config`` says of seeds: which, how many at once, and where they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mlflow
from mlflow.exceptions import ExecutionException
from mlflow.projects import utils as project_utils

from trueup.errors import InvalidInputError
from trueup.executor import check_address, executor_at
from trueup_mlflow.seeds.elsewhere import SeedsElsewhere
from trueup_mlflow.seeds.seed_processes import SeedProcesses

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
