"""Monitor registered models: estimated error before labels arrive, realized error after.

The scheduler is the user's own: a cron job or an orchestrator calls :func:`estimate` with each
batch. No estimate sees a change of the target given the features; :func:`realize` does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.monitoring.metrics import DEFAULT_METRIC, metric_of
from trueup.replace_file import replace_file
from trueup_mlflow.monitor.batch.tables import read_table
from trueup_mlflow.monitor.check.check_registry import (
    ReferenceKind,
    Wishes,
    check_uri,
    register_check,
    train_check,
)
from trueup_mlflow.monitor.check.predictions import LoadedModel
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion, resolve
from trueup_mlflow.monitor.compare_versions import ModelComparison, decide
from trueup_mlflow.monitor.report_page import draw_series, render_report
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.monitor.standing.threshold import kept_threshold, threshold_of
from trueup_mlflow.monitor.standing.verdict import state_of
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import (
    FAIL_ABOVE_TAG,
    METRIC_TAG,
    BatchRecord,
    of_newest_metric,
)
from trueup_mlflow.write.segment_items import segments_of

_log = logging.getLogger("trueup")

__all__ = ["compare", "estimate", "init", "records", "report"]


def init(
    model_uri: str,
    reference: Any,
    *,
    target: str,
    reference_is: ReferenceKind = "held-out",
    row_id: str | None = None,
    time: str | None = None,
    time_format: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    prediction: str | None = None,
    fail_above: float | str | None = None,
    metric: str = DEFAULT_METRIC,
) -> str:
    """Train, log and register the check of a model version.

    Parameters
    ----------
    model_uri : str
        ``models:/NAME/VERSION``, ``models:/NAME/latest`` or ``models:/NAME@ALIAS``.
    reference : data frame (pandas, Spark) or path of a parquet or CSV file
        Labelled rows.
    target : str
        Column of the labels.
    reference_is : {"held-out", "train"}, default "held-out"
        Whether the model has seen the rows. With "train" it is refitted five-fold where it can be.
    row_id : str, optional
        Column that identifies a row; needed to join labels that arrive late.
    time : str, optional
        Column of the rows' times. How much the error differs between the periods of the reference
        sets how wide the first intervals are, before any label.
    time_format : str, optional
        Format of times that are text, as of ``strptime``; ISO 8601 by default.
    features : sequence of str, optional
        Columns that the check sees; by default those that the model takes, without running numbers
        and time stamps. Refused, as is ``ignore``, with training rows: the check sees them whole.
    ignore : sequence of str, default ()
        Columns that the check does not see.
    prediction : str, optional
        Which column of the model's output is the prediction, where it gives several.
    fail_above : float or str, optional
        Threshold of ``status`` for this version: an error, or "1.5x" the error of the reference.
    metric : str, default "mse"
        What is estimated and realized: "mse" (of probabilities the Brier score), "mae",
        "log_loss", "brier_score", "poisson_deviance", "gamma_deviance" or "tweedie_deviance".
        Its name is that of the keys: ``estimated_mae``.

    Returns
    -------
    str
        URI of the check, ``models:/NAME__trueup_check/N``.

    Raises
    ------
    InvalidInputError
        If anything is wrong with the model or the reference; nothing is registered then.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> uri = monitor.init("models:/demand/1", held_out, target="y", row_id="id")
    >>> uri.startswith("models:/")
    True
    """
    threshold_of(fail_above, 1.0)  # refused before the training
    metric = metric_of(metric).name
    wishes = Wishes(
        target, row_id, reference_is, time, time_format, features, tuple(ignore), prediction, metric
    )
    client = MlflowClient()
    version = resolve(model_uri, client)
    table = read_table(reference, row_id=row_id)
    check = train_check(LoadedModel.load(version.uri), table, wishes)
    threshold = threshold_of(fail_above, check.schema.reference_error)
    uri = register_check(check, version, client)
    _keep_threshold(client, version, threshold, metric)
    _ = MonitorStore(version, client).run_id  # before two processes could both find it missing
    return uri


def _keep_threshold(
    client: MlflowClient, version: RegisteredVersion, threshold: float | None, metric: str
) -> None:
    """Keep the threshold of a version; one of another metric than the check's is none."""
    where = (version.name, version.version)
    if version.tags.get(METRIC_TAG, DEFAULT_METRIC) != metric:
        client.set_model_version_tag(*where, METRIC_TAG, metric)
        if threshold is None and FAIL_ABOVE_TAG in version.tags:
            client.delete_model_version_tag(*where, FAIL_ABOVE_TAG)
            _log.warning("the kept threshold was of another metric: give fail_above again")
    if threshold is not None:
        client.set_model_version_tag(*where, FAIL_ABOVE_TAG, f"{threshold:.17g}")


def estimate(model_uri: str, batch: Any, *, at: str | datetime | None = None) -> MSEEstimate:
    """Estimate the error of a model on a batch and log it.

    Parameters
    ----------
    model_uri : str
        As in :func:`init`; an alias is followed to its version.
    batch : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows without labels: the features, and the row id if ``init`` was given one.
    at : str or datetime, optional
        Time of the batch, UTC if it has no zone; now by default.

    Returns
    -------
    MSEEstimate
        Learned from the batches of earlier times whose labels are there by now. The same batch
        gives the same estimate, and is logged once.

    Raises
    ------
    InvalidInputError
        If the version has no check, or a column is missing.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> found = monitor.estimate("models:/demand/1", january, at="2026-01-31")
    >>> bool(found.low <= found.mse <= found.high)
    True
    """
    return Session.open(model_uri).estimate(batch, at=at)


def compare(
    champion: str, challenger: str, batch: Any, *, at: str | datetime | None = None
) -> ModelComparison:
    """Estimate the error of two models on the same batch, log both, and decide over all batches.

    Parameters
    ----------
    champion, challenger : str
        As ``model_uri`` in :func:`estimate`.
    batch : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows with the features of both.
    at : str or datetime, optional
        Time of the batch, now by default; one that the champion has already keeps its time.

    Returns
    -------
    ModelComparison
        Its verdict is "inconclusive" unless the batches that both models have say otherwise.

    Raises
    ------
    InvalidInputError
        As :func:`estimate`, or if both are the same version.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> monitor.compare("models:/demand/1", "models:/demand/1", february)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    trueup.errors.InvalidInputError: challenger must be another version than the champion; ...
    """
    client = MlflowClient()
    first, second = resolve(champion, client).uri, resolve(challenger, client).uri
    if first == second:
        raise InvalidInputError(
            "challenger must be another version than the champion",
            f"{first!r} twice",
            "Check the aliases.",
        )
    record = Session.open(first).record(batch, at=at)
    # at the champion's time: batches are paired by it, and the champion may have had this one
    moment = datetime.fromtimestamp(record.timestamp // 1000, UTC)
    other = Session.open(second)
    if other.check.schema.metric != record.metric:
        raise InvalidInputError(
            f"challenger must have the metric of the champion, {record.metric!r}",
            repr(other.check.schema.metric),
            "Run init for one of them again with metric=.",
        )
    theirs = other.record(batch, at=moment).as_estimate()
    series = [
        [one for one in records(uri) if one.metric == record.metric] for uri in (first, second)
    ]
    return decide(record.as_estimate(), theirs, *series)


def records(model_uri: str) -> list[BatchRecord]:
    """Return the monitored batches of a version in the order of their time.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> _ = monitor.estimate("models:/demand/1", january, at="2026-01-31")
    >>> monitor.records("models:/demand/1")[0].time[:10]
    '2026-01-31'
    """
    client = MlflowClient()
    return MonitorStore(resolve(model_uri, client), client).records()


def report(model_uri: str, path: str | Path, *, thresholds: Sequence[float | str] = ()) -> Path:
    """Write one self-contained HTML page about a version; log it and its figure to the monitor run.

    Parameters
    ----------
    model_uri : str
        As in :func:`estimate`.
    path : str or path
        File to write.
    thresholds : sequence of float or str, default ()
        Errors, or multiples of the reference's such as "1.5x", that are drawn as lines beside the
        one that ``init`` was given; the lowest of them counts for the verdict.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the version has no check, no batch yet, or a threshold is not above 0.

    Examples
    --------
    >>> from trueup_mlflow import monitor
    >>> _ = monitor.estimate("models:/demand/1", january, at="2026-01-31")
    >>> monitor.report("models:/demand/1", "demand.html").name
    'demand.html'
    """
    client = MlflowClient()
    version = resolve(model_uri, client)
    check_uri(version)
    store = MonitorStore(version, client)
    batches = of_newest_metric(store.records())
    if not batches:
        raise InvalidInputError(
            "model_uri must be a version with a batch",
            repr(version.uri),
            f"Make one with: trueup monitor run {version.uri} --batch FILE.",
        )
    reference = batches[-1].raw.get("reference")
    asked = [threshold_of(one, reference, "thresholds") for one in thresholds]
    kept = kept_threshold(version.tags)
    shown = sorted({one for one in (*asked, kept) if one is not None})
    figure = draw_series(batches, shown)
    aliases = client.get_model_version(version.name, version.version).aliases
    state = state_of(batches, min(shown, default=None))
    levels = segments_of(store.run().data.to_proto().metrics, batches[0].metric)
    page = replace_file(path, render_report(version.uri, batches, figure, state, aliases, levels))
    run_id = store.run_id
    client.log_artifact(run_id, str(page), "trueup")
    client.log_text(run_id, figure, "trueup/monitor.svg")
    return page
