"""Every monitored version of every registered model, with its batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlflow import MlflowClient
from mlflow.entities import Run

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.judging.threshold import kept_threshold
from trueup_mlflow.monitor.store import monitor_runs
from trueup_mlflow.write.monitor_items import (
    BATCH_TAG,
    CHECK_URI_TAG,
    BatchRecord,
    of_newest_metric,
)
from trueup_mlflow.write.runs import all_pages
from trueup_mlflow.write.segment_items import Segment, segments_of


@dataclass(frozen=True)
class MonitoredVersion:
    """A version of a registered model that has a check.

    Its batches are in the order of their time, of the metric that the last one has. Tags that
    should hold a batch, or the threshold of ``init``, and hold none are ``n_unreadable``; before
    the first batch there is no run.
    """

    model: str
    version: str
    experiment_id: str
    run_id: str
    records: tuple[BatchRecord, ...]
    segments: tuple[Segment, ...] = ()
    n_unreadable: int = 0
    fail_above: float | None = None


def monitored_versions(client: MlflowClient) -> list[MonitoredVersion]:
    """Return the monitored versions that the client may read, by name and number."""
    runs = monitor_runs(client)
    tags = dict(_checked(client))
    keys = dict.fromkeys([*runs, *tags])
    found = [_version(*key, runs.get(key), tags.get(key, {})) for key in keys]
    return sorted(found, key=lambda one: (one.model.casefold(), one.version.zfill(9)))


def _version(
    model: str, version: str, run: Run | None, tags: Mapping[str, str]
) -> MonitoredVersion:
    fail_above, n_wrong = _threshold(tags)
    if run is None:
        return MonitoredVersion(model, version, "", "", (), (), n_wrong, fail_above)
    found, n_unreadable = _records(run)
    records = of_newest_metric(found)
    return MonitoredVersion(
        model,
        version,
        str(run.info.experiment_id),
        str(run.info.run_id),
        tuple(sorted(records, key=lambda record: (record.timestamp, record.digest))),
        segments_of(run.data.to_proto().metrics, records[0].metric) if records else (),
        n_unreadable + n_wrong,
        fail_above,
    )


def _threshold(tags: Mapping[str, str]) -> tuple[float | None, int]:
    """Return the threshold of a version, and how many tags should hold one and do not."""
    try:
        return kept_threshold(tags), 0
    except InvalidInputError:
        return None, 1


def _records(run: Run) -> tuple[list[BatchRecord], int]:
    """Return the batches, and how many tags should hold one and do not."""
    found, n_unreadable = [], 0
    for tag, value in run.data.tags.items():
        if tag.startswith(BATCH_TAG):
            try:
                found.append(BatchRecord.from_json(json.loads(value)))
            except (LookupError, TypeError, ValueError):
                n_unreadable += 1
    return found, n_unreadable


def _checked(client: MlflowClient) -> Iterator[tuple[tuple[str, str], Mapping[str, str]]]:
    for version in all_pages(client.search_model_versions):
        if CHECK_URI_TAG in version.tags:
            yield (str(version.name), str(version.version)), version.tags
