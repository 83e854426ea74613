"""What the pages ask of one store, as one user sees it: experiments, runs, steps of a metric."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from uuid import uuid4

from mlflow import MlflowClient
from mlflow.entities import Experiment

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.runs import all_pages

PAGE_SIZE = 5_000
MAX_AGE = 300.0
"""Seconds after which all runs of an experiment are read again."""
CLOCK_SKEW = 600_000
"""Milliseconds by which clocks of the machines that write runs may differ."""


@dataclass(frozen=True)
class Snapshot:
    """All active runs of an experiment, the oldest first, and a text that changes as they do."""

    version: str
    runs: tuple[StoredRun, ...]


class RunCache:
    """The runs of one experiment, kept in memory and brought up to date by a few small searches.

    A run that ended long ago is not asked for again before everything is read anew: MLflow has no
    search for what was changed. So a tag that is set on an old run shows after ``MAX_AGE`` seconds
    at the latest, or at once when the reader asks for it.
    """

    def __init__(self, client: MlflowClient, experiment_id: str) -> None:
        self._client = client
        self._experiment_id = experiment_id
        self._lock = Lock()
        self._runs: dict[str, StoredRun] = {}
        self._read_at: float | None = None
        self._snapshot = Snapshot("", ())

    def snapshot(self, *, anew: bool = False) -> Snapshot:
        """Return the runs as they are now; ``anew`` reads all of them again."""
        with self._lock:
            known = self._runs
            if anew or self._read_at is None or time.monotonic() - self._read_at > MAX_AGE:
                current = {run.run_id: run for run in self._search("")}
                self._read_at = time.monotonic()
            else:
                current = {**known, **{run.run_id: run for run in self._changed()}}
            if current != known or not self._snapshot.version:
                ordered = sorted(current.values(), key=lambda run: (run.start, run.run_id))
                self._runs, self._snapshot = current, Snapshot(uuid4().hex, tuple(ordered))
            return self._snapshot

    def _changed(self) -> Iterator[StoredRun]:
        """Yield the runs that are new, at work, or have just ended."""
        started = max((run.start for run in self._runs.values()), default=0)
        ended = max((run.end for run in self._runs.values()), default=0)
        yield from self._search(f"attributes.start_time >= {max(0, started - CLOCK_SKEW)}")
        yield from self._search(f"attributes.end_time >= {max(1, ended - CLOCK_SKEW)}")
        at_work = {run.run_id: run for run in self._search("attributes.status = 'RUNNING'")}
        yield from at_work.values()
        for run in self._runs.values():  # ended by a clock that is far behind the latest one
            if run.status == "RUNNING" and run.run_id not in at_work:
                yield StoredRun.of(self._client.get_run(run.run_id))

    def _search(self, query: str) -> Iterator[StoredRun]:
        runs = self._client.search_runs
        found = all_pages(runs, [self._experiment_id], query, max_results=PAGE_SIZE)
        return map(StoredRun.of, found)


@dataclass(frozen=True)
class Store:
    """A client of MLflow for one user, and the runs that were read through it."""

    client: MlflowClient
    _caches: dict[str, RunCache] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def experiments(self) -> list[Experiment]:
        """Return the active experiments, the one that changed last first."""
        found = all_pages(self.client.search_experiments)
        return sorted(found, key=lambda one: (-(one.last_update_time or 0), one.name))

    def newest_experiment(self) -> str | None:
        """Return the id of the experiment with the latest run, None without any run."""
        ids = [found.experiment_id for found in all_pages(self.client.search_experiments)]
        order = ["attributes.start_time DESC"]
        runs = self.client.search_runs(ids, order_by=order, max_results=1) if ids else []
        return str(runs[0].info.experiment_id) if runs else None

    def experiment(self, experiment_id: str) -> Experiment:
        """Return one experiment; the store refuses those that the user may not read."""
        return self.client.get_experiment(experiment_id)

    def runs(self, experiment_id: str, *, anew: bool = False) -> Snapshot:
        """Return the runs of an experiment, which must be one that :meth:`experiment` returned."""
        with self._lock:
            if experiment_id not in self._caches:
                self._caches[experiment_id] = RunCache(self.client, experiment_id)
            cache = self._caches[experiment_id]
        return cache.snapshot(anew=anew)


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
