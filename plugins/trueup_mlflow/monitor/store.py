"""The monitor run of a model version: its batches, exactly once, in the order that survives a kill.

First a parameter that fixes step, time and values of the batch: MLflow lets a parameter be written
once, so that of several processes with the same batch one decides and all log the very same points,
which the store keeps once. Then predictions, a tag with the estimate, all metrics in one request,
and the tag again, marked as logged. A process that dies in between leaves a batch that the next
call completes with the same step, time and values.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

import pandas as pd
from mlflow.entities import Metric, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE

from trueup import __version__
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion
from trueup_mlflow.monitor.judging.threshold import kept_threshold
from trueup_mlflow.monitor.judging.verdict import State, state_of
from trueup_mlflow.write.failures import own_writing
from trueup_mlflow.write.items import ROLE_TAG, VERSION_TAG
from trueup_mlflow.write.monitor_items import (
    BATCH_TAG,
    CLAIM_PARAM,
    ESTIMATED,
    MODEL_TAG,
    MONITOR_ROLE,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
    of_metric,
    of_newest_metric,
)
from trueup_mlflow.write.runs import (
    all_pages,
    ensure_experiment,
    mark_as_model_training,
    read_parquet,
)

ROW_ID, PREDICTION, SEGMENT = "row_id", "prediction", "segment"
_BATCHES, _LABELS, _SEGMENTS = "trueup/batches", "trueup/labels", "trueup/segments"


class MonitorStore:
    """Reads and writes the monitor run of one version."""

    def __init__(self, version: RegisteredVersion, client: MlflowClient) -> None:
        self._version = version
        self._client = client

    @cached_property
    def run_id(self) -> str:
        """Id of the monitor run, which is created when it is first asked for.

        Of two that were created at the same moment the older one counts.
        """
        experiment = experiment_of(self._version.name, self._client)
        found = self._oldest(experiment)
        if found is None:
            self._create(experiment)
            found = self._oldest(experiment)
        if found is None:
            raise MlflowException(f"the monitor run of {self._version.uri} was deleted")
        return str(found.info.run_id)

    def run(self) -> Run:
        return self._client.get_run(self.run_id)

    def _oldest(self, experiment: str) -> Run | None:
        found = self._client.search_runs(
            [experiment],
            f"tags.`{ROLE_TAG}` = '{MONITOR_ROLE}' and "
            f"tags.`{VERSION_OF_MODEL_TAG}` = '{self._version.version}'",
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
            max_results=1,
        )
        return found[0] if found else None

    def _create(self, experiment: str) -> None:
        mark_as_model_training(self._client, experiment)
        run = self._client.create_run(
            experiment,
            run_name=f"monitor version {self._version.version}",
            tags={
                ROLE_TAG: MONITOR_ROLE,
                MODEL_TAG: self._version.name,
                VERSION_OF_MODEL_TAG: self._version.version,
                VERSION_TAG: __version__,
            },
        )
        self._client.set_terminated(run.info.run_id)

    def records(self) -> list[BatchRecord]:
        """Return the batches in the order of their time."""
        return records_of(self.run())

    def claim(
        self, record: BatchRecord, metrics: dict[str, float]
    ) -> tuple[BatchRecord, dict[str, float]]:
        """Return the record and the metrics that the first process to claim the batch gave it."""
        run_id, key = self.run_id, CLAIM_PARAM + record.digest
        ours = {
            "step": record.step,
            "timestamp": record.timestamp,
            "metrics": metrics,
            "outlook": dict(record.outlook),
        }
        refusal = None
        try:
            self._client.log_param(run_id, key, json.dumps(ours))
        except MlflowException as failure:  # another process was faster, or the store failed
            refusal = failure
        run = self._client.get_run(run_id)
        if key not in run.data.params:
            raise refusal or MlflowException(f"the claim of batch {record.digest} was lost")
        kept = json.loads(run.data.params[key])
        latest = {one.digest: one for one in records_of(run)}.get(record.digest, record)
        return latest.decided_by(kept), kept["metrics"]

    def keep_predictions(self, digest: str, row_ids: pd.Series, prediction: pd.Series) -> None:
        table = pd.DataFrame({ROW_ID: row_ids.to_numpy(), PREDICTION: prediction.to_numpy()})
        self._keep(table, _BATCHES, digest)

    def predictions(self, digest: str) -> pd.DataFrame:
        """Return row id and prediction of a batch; they are kept before it counts as logged."""
        return self._table(f"{_BATCHES}/{digest}.parquet")

    def keep_segments(self, digest: str, column: str, levels: pd.DataFrame) -> None:
        """Store row id and ``<column>/<level>`` of the rows of a batch; a column is kept once."""
        name = hashlib.sha256(column.encode(errors="surrogatepass")).hexdigest()[:16]
        self._keep(levels, f"{_SEGMENTS}/{digest}", name)

    def segments(self, digest: str) -> list[pd.DataFrame]:
        """Return row ids and levels of a batch, a table for each column that was estimated by."""
        found = self._client.list_artifacts(self.run_id, f"{_SEGMENTS}/{digest}")
        return [self._table(one.path) for one in found]

    def keep_labels(self, digest: str, labels: pd.DataFrame) -> None:
        """Store labels of a batch beside earlier ones: no process overwrites another's."""
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        self._keep(labels, f"{_LABELS}/{digest}", name)

    def labels(self, digest: str) -> pd.DataFrame | None:
        """Return the labels of a batch in the order in which they came, later ones last."""
        found = self._client.list_artifacts(self.run_id, f"{_LABELS}/{digest}")
        parts = [self._table(one.path) for one in sorted(found, key=lambda one: one.path)]
        if not parts:
            return None
        rows = pd.concat(parts, ignore_index=True)
        return rows.drop_duplicates(ROW_ID, keep="last", ignore_index=True)

    def log_realized(self, record: BatchRecord, metrics: dict[str, float]) -> None:
        """Log the realized error of a batch; a correction is a millisecond later and so the latest.

        The history of the metric keeps the values that were corrected.
        """
        self._log_points(record, metrics, record.timestamp + len(record.corrections))

    def describe(self) -> State:
        """Let name and description of the run say how the monitored version stands."""
        run = self.run()
        records = of_newest_metric(records_of(run))
        state = state_of(records, kept_threshold(self._version.tags))
        name = f"monitor version {self._version.version}: {state.verdict}"
        if run.info.run_name != name:
            self._client.update_run(self.run_id, name=name)
        if run.data.tags.get(MLFLOW_RUN_NOTE) != state.sentence:
            _twice(lambda: self._client.set_tag(self.run_id, MLFLOW_RUN_NOTE, state.sentence))
        return state

    def write(self, record: BatchRecord) -> None:
        value, run_id = json.dumps(record.to_json()), self.run_id
        _twice(lambda: self._client.set_tag(run_id, BATCH_TAG + record.digest, value))

    def log(self, record: BatchRecord, metrics: dict[str, float]) -> None:
        """Log the metrics of a batch to the run and to the model, unless they are there."""
        key = of_metric(ESTIMATED, record.metric)
        key = key if key in metrics else next(iter(metrics))
        history = self._client.get_metric_history(self.run_id, key)
        if any(m.timestamp == record.timestamp and m.step == record.step for m in history):
            return
        self._log_points(record, metrics, record.timestamp)

    def _log_points(self, record: BatchRecord, metrics: dict[str, float], timestamp: int) -> None:
        run_id, model_id = self.run_id, self._version.model_id
        points = [
            Metric(name, value, timestamp, record.step, model_id=model_id, run_id=run_id)
            for name, value in metrics.items()
        ]
        with own_writing():
            _twice(lambda: self._client.log_batch(run_id, metrics=points))

    def _keep(self, table: pd.DataFrame, folder: str, name: str) -> None:
        with tempfile.TemporaryDirectory() as here:
            path = Path(here) / f"{name}.parquet"
            table.to_parquet(path, index=False)
            self._client.log_artifact(self.run_id, str(path), folder)

    def _table(self, path: str) -> pd.DataFrame:
        table: pd.DataFrame = read_parquet(self._client, self.run_id, path).to_pandas()
        return table


def _twice(write: Callable[[], object]) -> None:
    """Write again what two processes wrote in the same instant: the store refuses one of them."""
    try:
        write()
    except MlflowException:
        write()


def records_of(run: Run) -> list[BatchRecord]:
    """Return the batches that a monitor run holds, in the order of their time."""
    records = [
        BatchRecord.from_json(json.loads(value))
        for tag, value in run.data.tags.items()
        if tag.startswith(BATCH_TAG)
    ]
    return sorted(records, key=lambda record: (record.timestamp, record.digest))


def monitor_runs(client: MlflowClient, models: Collection[str] = ()) -> dict[tuple[str, str], Run]:
    """Return the monitor run of each version of these models, or of all; of two the older one."""
    experiments = all_pages(client.search_experiments, filter_string="name LIKE 'trueup/%'")
    names = {f"trueup/{model}" for model in models}
    ids = [one.experiment_id for one in experiments if not names or one.name in names]
    if not ids:
        return {}
    query = f"tags.`{ROLE_TAG}` = '{MONITOR_ROLE}'"
    order = ["attributes.start_time DESC", "attributes.run_id DESC"]
    tags = (MODEL_TAG, VERSION_OF_MODEL_TAG)
    return {
        (run.data.tags[MODEL_TAG], run.data.tags[VERSION_OF_MODEL_TAG]): run
        for run in all_pages(client.search_runs, ids, query, max_results=10_000, order_by=order)
        if all(tag in run.data.tags for tag in tags)
    }


def experiment_of(model: str, client: MlflowClient) -> str:
    """Return the id of the experiment ``trueup/<model>``, which is created if it is missing."""
    return ensure_experiment(client, f"trueup/{model}", argument="model_uri")
