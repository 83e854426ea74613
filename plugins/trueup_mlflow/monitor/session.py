"""A monitored version that is loaded once and estimates many batches."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
from mlflow.tracking import MlflowClient

from trueup.monitoring import MSEEstimate
from trueup.monitoring.learning import Earlier, Learned, Outlook, Raw, learn
from trueup.monitoring.trust.alarms import with_trust
from trueup_mlflow.monitor.batch.tables import checked_ids, digest_of, read_table
from trueup_mlflow.monitor.check.check_registry import Check, check_uri, load_check
from trueup_mlflow.monitor.check.predictions import GivenPredictions, LoadedModel
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion, resolve
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord, estimate_metrics, timestamp_of

_log = logging.getLogger("trueup")

_AHEAD = timedelta(days=32)  # a month that still runs has the time of its end


@dataclass(frozen=True)
class Session:
    """Model, check and monitor run of one version; one that is kept loads the model once.

    Examples
    --------
    >>> from trueup_mlflow.monitor import Session
    >>> session = Session.open("models:/demand/1")  # loads the model and its check once
    >>> session.estimate(january, at="2026-01-31").n
    150
    """

    version: RegisteredVersion
    model: LoadedModel | GivenPredictions
    check: Check
    store: MonitorStore

    @classmethod
    def open(cls, model_uri: str, *, predicted: str | None = None) -> Session:
        """Load the version that a URI means now, or its check alone where batches have predictions.

        Parameters
        ----------
        model_uri : str
            As in :func:`trueup_mlflow.monitor.estimate`.
        predicted : str, optional
            Column of batches that holds the predictions of the model, which is not loaded then.

        Raises
        ------
        InvalidInputError
            If there is no such version, it has no check, or it cannot be loaded here.
        """
        client = MlflowClient()
        version = resolve(model_uri, client)
        check = load_check(version)
        model = LoadedModel.load(version.uri) if predicted is None else GivenPredictions(predicted)
        return cls(version, model, check, MonitorStore(version, client))

    @property
    def check_uri(self) -> str:
        """URI of the check that was loaded."""
        return check_uri(self.version)

    def estimate(self, batch: Any, *, at: str | datetime | None = None) -> MSEEstimate:
        """Estimate the error on a batch and log it; see :func:`trueup_mlflow.monitor.estimate`."""
        return self.record(batch, at=at).as_estimate()

    def record(self, batch: Any, *, at: str | datetime | None = None) -> BatchRecord:
        """Return the record of a batch, which is logged if it is new."""
        schema = self.check.schema
        columns = (*schema.columns, *self.model.columns)
        table = read_table(batch, columns=columns, row_id=schema.row_id, kind=schema.id_kind)
        features = schema.features_of(table)
        prediction = self.model.predict(table, schema)
        ids = checked_ids(table, schema.row_id, schema.id_kind)
        digest = digest_of(features, prediction, ids if schema.row_id else None, schema.metric)
        timestamp = timestamp_of(at, digest)
        records = self.store.records()
        known = next((record for record in records if record.digest == digest), None)
        if known is not None and known.timestamp != timestamp and (at is not None or known.logged):
            _say_known(known)
        if known is None:
            _say_future(timestamp)
        if known is not None and known.logged:
            return known
        estimate = self.check.consensus.estimate(features, prediction)
        raw = _raw_of(estimate, schema.reference_error)
        learned = _learned_for(raw, records, timestamp, schema.scale_prior, schema.metric)
        found = with_trust(estimate, learned, schema.alarms(features, prediction))
        record = known or BatchRecord(
            digest=digest,
            step=len(records),
            timestamp=timestamp,
            n=len(table),
            estimate=found.to_dict(),
            moved=schema.moved(features),
            raw=asdict(raw),
            outlook=asdict(learned.outlook),
        )
        if not found.is_finite:  # there is nothing to log, and it is not trusted
            return record
        one_step = self.check.one_step_error(features, prediction)
        return self._log(record, estimate_metrics(found, one_step, raw.mse), ids, prediction)

    def _log(
        self, record: BatchRecord, metrics: dict[str, float], ids: pd.Series, prediction: Any
    ) -> BatchRecord:
        record, metrics = self.store.claim(record, metrics)
        if record.logged:
            return record
        self.store.keep_predictions(record.digest, ids, pd.Series(prediction))
        self.store.write(record)
        self.store.log(record, metrics)
        done = record.mark(logged=True)
        self.store.write(done)
        self.store.describe()
        return done


def _say_known(known: BatchRecord) -> None:
    moment = datetime.fromtimestamp(known.timestamp / 1000, UTC)
    _log.warning(
        "this batch was logged before, at %s: it keeps that time and is not logged again",
        moment.isoformat(timespec="seconds"),
    )


def _say_future(timestamp: int) -> None:
    moment = datetime.fromtimestamp(timestamp / 1000, UTC)
    if moment > datetime.now(UTC) + _AHEAD:
        _log.warning(
            "the batch's time, %s, lies in the future: batches of earlier times do not learn from "
            "it, and status takes it for the newest. Check the date: a batch keeps its time",
            moment.isoformat(timespec="seconds"),
        )


def _raw_of(estimate: MSEEstimate, reference_error: float | None) -> Raw:
    """Return the estimate as it is before learning; without a reference error it never moved."""
    reference = estimate.value if reference_error is None else reference_error
    return Raw(estimate.value, estimate.low, estimate.high, reference)


def _learned_for(
    raw: Raw,
    records: Sequence[BatchRecord],
    timestamp: int,
    scale_prior: Sequence[float],
    metric: str,
) -> Learned:
    """Return what a batch learns from those of earlier times and of its own metric."""
    before = [
        record
        for record in records
        if record.timestamp < timestamp and record.logged and record.metric == metric
    ]
    return learn(raw, [_earlier(record) for record in before], scale_prior)


def _earlier(record: BatchRecord) -> Earlier:
    if not record.raw:  # kept by a version that did not learn
        low, high = float(record.estimate["low"]), float(record.estimate["high"])
        return Earlier(Raw(record.value, low, high, reference=record.value), record.realized)
    outlook = Outlook(**record.outlook) if record.outlook else None
    return Earlier(Raw(**record.raw), record.realized, outlook)
