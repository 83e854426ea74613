"""The monitor run of a model version: its batches, exactly once, in the order that survives a kill.

First a parameter that fixes step, time and values of the batch: MLflow lets a parameter be written
once, so that of several processes with the same batch one decides and all log the very same points,
which the store keeps once. Then predictions, a tag with the estimate, all metrics in one request,
and the tag again, marked as logged. A process that dies in between leaves a batch that the next
call completes with the same step, time and values.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import mlflow
import pandas as pd
from mlflow.entities import Metric, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trueup import __version__
from trueup_mlflow.monitor.registered_model import RegisteredVersion
from trueup_mlflow.write.items import ROLE_TAG, VERSION_TAG
from trueup_mlflow.write.monitor_items import (
    BATCH_TAG,
    CLAIM_PARAM,
    ESTIMATED,
    MODEL_TAG,
    MONITOR_ROLE,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
)

ROW_ID, PREDICTION = "row_id", "prediction"


class MonitorStore:
    """Reads and writes the monitor run of one version.

    Parameters
    ----------
    version : RegisteredVersion
        The monitored version.
    client : MlflowClient
        Client of the tracking store.
    """

    def __init__(self, version: RegisteredVersion, client: MlflowClient) -> None:
        self._version = version
        self._client = client

    def run(self) -> Run:
        """Return the monitor run, which is created when it is first asked for.

        Of two that were created at the same moment the older one counts.
        """
        experiment = experiment_of(self._version.name, self._client)
        found = self._oldest(experiment)
        if found is None:
            self._create(experiment)
            found = self._oldest(experiment)
        if found is None:
            raise MlflowException(f"the monitor run of {self._version.uri} was deleted")
        return found

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
        run_id, key = self.run().info.run_id, CLAIM_PARAM + record.digest
        ours = {"step": record.step, "timestamp": record.timestamp, "metrics": metrics}
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
        return latest.mark(step=kept["step"], timestamp=kept["timestamp"]), kept["metrics"]

    def keep_predictions(self, digest: str, row_ids: pd.Series, prediction: pd.Series) -> None:
        """Store row id and prediction of each row."""
        table = pd.DataFrame({ROW_ID: row_ids.to_numpy(), PREDICTION: prediction.to_numpy()})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{digest}.parquet"
            table.to_parquet(path, index=False)
            self._client.log_artifact(self.run().info.run_id, str(path), "trueup/batches")

    def predictions(self, digest: str) -> pd.DataFrame:
        """Return row id and prediction of a batch."""
        with tempfile.TemporaryDirectory() as folder:
            path = mlflow.artifacts.download_artifacts(
                run_id=self.run().info.run_id,
                artifact_path=f"trueup/batches/{digest}.parquet",
                dst_path=folder,
                tracking_uri=self._client.tracking_uri,
            )
            return pd.read_parquet(path)

    def write(self, record: BatchRecord) -> None:
        """Set the tag of a batch."""
        value = json.dumps(record.to_json())
        run_id = self.run().info.run_id
        _twice(lambda: self._client.set_tag(run_id, BATCH_TAG + record.digest, value))

    def log(self, record: BatchRecord, metrics: dict[str, float]) -> None:
        """Log the metrics of a batch to the run and to the model, unless they are there."""
        run_id = self.run().info.run_id
        key = ESTIMATED if ESTIMATED in metrics else next(iter(metrics))
        history = self._client.get_metric_history(run_id, key)
        if any(m.timestamp == record.timestamp and m.step == record.step for m in history):
            return
        model_id = self._version.model_id
        points = [
            Metric(name, value, record.timestamp, record.step, model_id=model_id, run_id=run_id)
            for name, value in metrics.items()
        ]
        _twice(lambda: self._client.log_batch(run_id, metrics=points))


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


def experiment_of(model: str, client: MlflowClient) -> str:
    """Return the id of the experiment ``trueup/<model>``, which is created if it is missing."""
    name = f"trueup/{model}"
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:  # another process was faster
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)
