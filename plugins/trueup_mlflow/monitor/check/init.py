"""Making the check of a model version: the first step of monitoring it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mlflow.tracking import MlflowClient

from trueup.monitoring.metrics import DEFAULT_METRIC, metric_of
from trueup_mlflow.monitor.batch.tables import read_table
from trueup_mlflow.monitor.check.check_registry import register_check, train_check
from trueup_mlflow.monitor.check.predictions import GivenPredictions, LoadedModel
from trueup_mlflow.monitor.check.reference import ReferenceKind, Wishes
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion, resolve
from trueup_mlflow.monitor.judging.threshold import threshold_of
from trueup_mlflow.monitor.store import MonitorStore
from trueup_mlflow.write.monitor_items import FAIL_ABOVE_TAG, METRIC_TAG, of_newest_metric

_log = logging.getLogger("trueup")


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
    predicted: str | None = None,
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
    predicted : str, optional
        Column of the reference that holds the model's predictions; the model is not loaded then.

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
        target,
        row_id,
        reference_is,
        time,
        time_format,
        features,
        tuple(ignore),
        prediction,
        metric,
        predicted,
    )
    client = MlflowClient()
    version = resolve(model_uri, client)
    table = read_table(reference, row_id=row_id)
    model = (
        LoadedModel.load(version.uri)
        if predicted is None
        else GivenPredictions.of(version.uri, predicted)
    )
    check = train_check(model, table, wishes)
    threshold = threshold_of(fail_above, check.schema.reference_error)
    uri = register_check(check, version, client)
    _keep_threshold(client, version, threshold, metric)
    store = MonitorStore(resolve(version.uri, client), client)
    # the run is made here, so that processes that come at the same time find one
    if any(record.metric == metric for record in of_newest_metric(store.records())):
        store.describe()  # the threshold may be new
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
