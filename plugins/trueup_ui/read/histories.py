"""The steps of a metric: one request for each run, so only for the runs that are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlflow import MlflowClient

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
