"""The one place that writes to MLflow: it never fails the run of its host."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import mlflow
from mlflow.data.dataset import Dataset
from mlflow.entities import Dataset as DatasetEntity
from mlflow.entities import DatasetInput, LoggedModelInput, Metric, RunTag
from mlflow.tracking import MlflowClient

from trueup.errors import TrueupError
from trueup.redact import without_credentials
from trueup_mlflow.write.failures import (
    COOLDOWN,
    SILENT,
    describe,
    is_unanswered,
    own_writing,
    told,
    warn,
)
from trueup_mlflow.write.items import ARTIFACT_FOLDER, LogItems, skipped_items

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure
    from PIL.Image import Image


@dataclass(frozen=True)
class Point:
    """Where on a run's axes the metrics of one result lie."""

    step: int = 0  # step of the metrics
    timestamp: int | None = None  # milliseconds since 1970; the time of writing by default
    model_id: str | None = None  # LoggedModel that the metrics belong to
    # data set that the metrics belong to; anything with ``name`` and ``digest`` will do, but only
    # an MLflow data set becomes an input of the run
    dataset: Any = None


@dataclass(frozen=True)
class RunWriter:
    """Writes results to one run, by default the active one, and a new one where none is active.

    Each method returns whether the result was written. A failure is a ``TrueupWarning`` and, where
    the store still answers, a tag ``trueup.skipped.<key>``. The client is that of the store, by
    default one for the current tracking URI.
    """

    run_id: str | None = None
    client: Any = None

    def log(self, items: LogItems, point: Point | None = None) -> bool:
        """Write metrics and tags with one ``log_batch`` request."""
        at = Point() if point is None else point
        written = self._guarded(items.key, lambda: self._log_batch(items, at))
        for key, reason in items.skipped.items():
            warn(f"{key} was not logged: {reason}")
        return written

    def skip(self, key: str, reason: str) -> bool:
        """Tag the run with the reason why ``K`` has no calibrated value, and warn."""
        return self.log(skipped_items(key, reason))

    def log_text(self, text: str, name: str, key: str) -> bool:
        """Write a text as ``trueup/<name>``."""
        path, clean = f"{ARTIFACT_FOLDER}/{name}", without_credentials(text)
        return self._guarded(key, lambda: self._client.log_text(self._run_id, clean, path))

    def log_table(self, make: Callable[[], pa.Table], name: str, key: str) -> bool:
        """Make a table and write it as ``trueup/<name>``; making is guarded as well."""
        return self._guarded(key, lambda: self._upload(make(), name))

    def log_figure(self, draw: Callable[[], Figure], name: str, key: str) -> bool:
        """Draw a figure and write it as ``trueup/<name>``; drawing is guarded as well."""
        path = f"{ARTIFACT_FOLDER}/{name}"
        return self._guarded(key, lambda: self._client.log_figure(self._run_id, draw(), path))

    def log_image(self, draw: Callable[[], Image], name: str, key: str) -> bool:
        """Draw an image and write it as ``trueup/<name>``; drawing is guarded as well."""
        path = f"{ARTIFACT_FOLDER}/{name}"
        return self._guarded(key, lambda: self._client.log_image(self._run_id, draw(), path))

    def require_store(self) -> None:
        """Raise TrueupError where the store had no answer in the last minute."""
        if SILENT.is_open(self._place):
            raise TrueupError(f"the store does not answer: nothing is written for {COOLDOWN:.0f} s")

    @cached_property
    def _client(self) -> Any:
        return MlflowClient() if self.client is None else self.client

    @cached_property
    def _run_id(self) -> str:
        if self.run_id is not None:
            return self.run_id
        run = mlflow.active_run() or mlflow.start_run()
        return str(run.info.run_id)

    def _upload(self, table: pa.Table, name: str) -> None:
        from pyarrow.parquet import write_table

        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            write_table(table, path, compression="zstd")
            self._client.log_artifact(self._run_id, str(path), ARTIFACT_FOLDER)

    def _log_batch(self, items: LogItems, point: Point) -> None:
        if items.metrics and (point.model_id is not None or isinstance(point.dataset, Dataset)):
            self._link_inputs(point)
        self._client.log_batch(
            self._run_id,
            metrics=_metrics(items, point, self._run_id),
            tags=[RunTag(tag, without_credentials(value)) for tag, value in items.all_tags.items()],
        )

    def _link_inputs(self, point: Point) -> None:
        """Make model and data set inputs of the run, as ``mlflow.log_metrics`` does."""
        run = self._client.get_run(self._run_id)
        models = [*run.inputs.model_inputs, *run.outputs.model_outputs]
        datasets = [entry.dataset for entry in run.inputs.dataset_inputs]
        new_models = [
            LoggedModelInput(model_id)
            for model_id in ([] if point.model_id is None else [point.model_id])
            if model_id not in {model.model_id for model in models}
        ]
        new_datasets = [
            DatasetInput(_dataset_entity(dataset))
            for dataset in ([point.dataset] if isinstance(point.dataset, Dataset) else [])
            if (dataset.name, dataset.digest) not in {(d.name, d.digest) for d in datasets}
        ]
        if new_models or new_datasets:
            self._client.log_inputs(self._run_id, models=new_models, datasets=new_datasets)

    def _guarded(self, key: str, write: Callable[[], object]) -> bool:
        """Write, or tell why not; a store that did not answer is left alone for a while."""
        if SILENT.is_open(self._place):
            return False
        try:
            with own_writing():
                write()
        except Exception as failure:  # a guest never fails its host, whatever the store raises
            with suppress(Exception), told(f"{key} was not logged"):
                self._fail(key, failure)
            return False
        return True

    @property
    def _place(self) -> str:
        return str(getattr(self._client, "tracking_uri", ""))

    def _fail(self, key: str, failure: Exception) -> None:
        reason = f"writing failed: {describe(failure)}"
        if is_unanswered(failure):
            SILENT.trip(self._place)
            reason += f"; nothing is written for {COOLDOWN:.0f} s"
        else:
            self._tag_skipped(key, reason)
        warn(f"{key} was not logged: {reason}")

    def _tag_skipped(self, key: str, reason: str) -> None:
        try:
            tags = [RunTag(*item) for item in skipped_items(key, reason).all_tags.items()]
            with own_writing():
                self._client.log_batch(self._run_id, tags=tags)
        except Exception as failure:  # most likely the store that has just failed
            if is_unanswered(failure):
                SILENT.trip(self._place)
            warn(f"the run could not be tagged: {describe(failure)}")


def _metrics(items: LogItems, point: Point, run_id: str) -> list[Metric]:
    timestamp = time.time_ns() // 1_000_000 if point.timestamp is None else point.timestamp
    dataset = point.dataset
    return [
        Metric(
            key,
            value,
            timestamp,
            point.step,
            model_id=point.model_id,
            dataset_name=None if dataset is None else dataset.name,
            dataset_digest=None if dataset is None else dataset.digest,
            run_id=run_id,
        )
        for key, value in items.metrics.items()
    ]


def _dataset_entity(dataset: Dataset) -> DatasetEntity:
    content = dataset.to_dict()
    names = ("name", "digest", "source_type", "source", "schema", "profile")
    return DatasetEntity(**{name: content.get(name) for name in names})
