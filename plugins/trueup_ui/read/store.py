"""What the pages ask of one store, as one user sees it: experiments, runs, steps of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from mlflow import MlflowClient
from mlflow.entities import Experiment

from trueup_mlflow.write.runs import all_pages
from trueup_ui.read.run_cache import RunCache, Snapshot


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment; ``updated`` in milliseconds since 1970."""

    experiment_id: str
    name: str
    updated: int


@dataclass(frozen=True)
class Store:
    """A client of MLflow for one user, and the runs that were read through it."""

    client: MlflowClient
    _caches: dict[str, RunCache] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def experiments(self) -> list[StoredExperiment]:
        """Return the active experiments, the one that changed last first."""
        found = map(_stored, all_pages(self.client.search_experiments))
        return sorted(found, key=lambda one: (-one.updated, one.name))

    def newest_experiment(self) -> str | None:
        """Return the id of the experiment with the latest run, None without any run."""
        ids = [found.experiment_id for found in all_pages(self.client.search_experiments)]
        order = ["attributes.start_time DESC"]
        runs = self.client.search_runs(ids, order_by=order, max_results=1) if ids else []
        return str(runs[0].info.experiment_id) if runs else None

    def experiment(self, experiment_id: str) -> StoredExperiment:
        """Return one experiment; the store refuses those that the user may not read."""
        return _stored(self.client.get_experiment(experiment_id))

    def runs(self, experiment_id: str, *, anew: bool = False) -> Snapshot:
        """Return the runs of an experiment, which must be one that :meth:`experiment` returned."""
        with self._lock:
            if experiment_id not in self._caches:
                self._caches[experiment_id] = RunCache(self.client, experiment_id)
            cache = self._caches[experiment_id]
        return cache.snapshot(anew=anew)


def _stored(found: Experiment) -> StoredExperiment:
    updated = int(found.last_update_time or 0)
    return StoredExperiment(str(found.experiment_id), str(found.name), updated)


MOST_RUNS = 60
"""Of so many runs at most the steps are read at once."""

History = Mapping[int, float]
"""Step -> value; the one that was logged last where a step has several."""


def read_histories(client: MlflowClient, run_ids: Sequence[str], key: str) -> dict[str, History]:
    """Return the steps of a metric for each of the first ``MOST_RUNS`` runs."""
    return {
        run_id: {
            point.step: point.value
            for point in sorted(
                client.get_metric_history(run_id, key), key=lambda point: point.timestamp
            )
        }
        for run_id in run_ids[:MOST_RUNS]
    }
