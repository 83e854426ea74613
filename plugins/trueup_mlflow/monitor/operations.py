"""What is asked of a monitored version: an estimate, a comparison, its batches and its report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup.monitoring import MSEEstimate
from trueup.replace_file import replace_file
from trueup_mlflow.monitor.check.check_registry import check_uri
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.judging.threshold import kept_threshold, threshold_of
from trueup_mlflow.monitor.judging.verdict import state_of
from trueup_mlflow.monitor.report_page import draw_series, render_report
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import BatchRecord, of_newest_metric
from trueup_mlflow.write.segment_items import segments_of

if TYPE_CHECKING:
    from trueup_mlflow.monitor.compare_versions import ModelComparison


def estimate(
    model_uri: str,
    batch: Any,
    *,
    at: str | datetime | None = None,
    predicted: str | None = None,
) -> MSEEstimate:
    """Estimate the error of a model on a batch and log it.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.init`; an alias is followed to its version.
    batch : data frame (pandas, Spark) or path of a parquet or CSV file
        Rows without labels: the features, and the row id if ``init`` was given one.
    at : str or datetime, optional
        Time of the batch, UTC if it has no zone; now by default.
    predicted : str, optional
        Column of the batch that holds the predictions of the model, as it gave them in production
        or where its packages are: the model is not loaded then.

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
    return Session.open(model_uri, predicted=predicted).estimate(batch, at=at)


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
    from trueup_mlflow.monitor.compare_versions import decide  # loads as long as an estimate takes

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
