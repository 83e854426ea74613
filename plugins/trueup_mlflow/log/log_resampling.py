"""An estimate by resampling as runs: the estimate is the parent, each test set a nested run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mlflow.tracking import MlflowClient
from mlflow.tracking.fluent import _get_experiment_id, active_run
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NAME

from trueup_mlflow.log.arguments import check_place
from trueup_mlflow.write.failures import refusing_only, warn
from trueup_mlflow.write.items import RESAMPLING_ROLE, ROLE_TAG, figure_file, metric_key
from trueup_mlflow.write.runs import mark_as_model_training, new_child, new_run
from trueup_mlflow.write.writer import RunWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure


from trueup import __version__
from trueup_mlflow.write.items import (
    FOLD_TAG,
    RESAMPLING_TAG,
    VERSION_TAG,
    LogItems,
    calibrated_key,
)


@refusing_only
def log_resampling(
    estimate: Any,
    *,
    run_name: str | None = None,
    prefix: str = "",
    run_id: str | None = None,
    nested_folds: bool = True,
    client: MlflowClient | None = None,
) -> str | None:
    """Log a ``GEEstimate``: one run for it, and a nested run for each test set.

    Parameters
    ----------
    estimate : GEEstimate
        Of ``generalization_error`` or ``nested_resampling``.
    run_name : str, optional
        Name of a run that is made; by default the measure, how many test sets and the strategy.
    prefix : str
        Put before the measure in the keys.
    run_id : str, optional
        Run of the estimate; by default the active run, and a new one, which is ended, where none is
        active. Only a new one is of the role ``resampling``: a training stays one.
    nested_folds : bool, default True
        Whether to make a run of each test set, with the configuration that a tuner selected there
        as its parameters.
    client : mlflow.tracking.MlflowClient, optional
        Client of the store; one for the current tracking URI by default.

    Returns
    -------
    str or None
        Id of the run of the estimate; None where not all could be logged, which is a
        ``TrueupWarning``.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import KFold
    >>> from trueup.resampling import generalization_error
    >>> from trueup_mlflow import log_resampling
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> estimate = generalization_error(LogisticRegression(), X, X[:, 0] > 0, KFold(4))
    >>> run_id = log_resampling(estimate)
    >>> mlflow.get_run(run_id).data.metrics["n_splits"]
    4.0
    """
    check_place(prefix=prefix, run_id=run_id)
    client = client or MlflowClient()
    given = run_id or _active_run_id()
    key = metric_key(estimate.measure, prefix)
    if given is not None and key in client.get_run(given).data.metrics:
        warn(f"run {given} has a {key} of its own, which this replaces: pass another prefix.")
    parent = given or _begin(client, run_name or _name_of(estimate))
    writer = RunWriter(parent, client)
    writer.log(resampling_items(estimate, prefix))
    writer.log_figure(partial(_drawn, estimate), figure_file("resampling", key), key)
    writer.require_store()
    if nested_folds:
        experiment_id = client.get_run(parent).info.experiment_id
        for index in range(estimate.n_splits):
            _log_fold(client, (experiment_id, parent), estimate, index, prefix)
    if given is None:
        client.set_terminated(parent)
    return parent


def _begin(client: MlflowClient, name: str) -> str:
    experiment_id = _get_experiment_id()
    mark_as_model_training(client, experiment_id)
    return new_run(client, experiment_id, {MLFLOW_RUN_NAME: name, ROLE_TAG: RESAMPLING_ROLE})


def _name_of(estimate: Any) -> str:
    strategy = str(estimate.strategy).partition("(")[0]
    return f"{estimate.measure} over {estimate.n_splits} test sets of {strategy}"


def _drawn(estimate: Any) -> Figure:
    """Draw an estimate on a figure of its own: no window, and no global state of matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    estimate.plot(figure.add_subplot())
    return figure


def _active_run_id() -> str | None:
    run = active_run()
    return None if run is None else str(run.info.run_id)


def _log_fold(
    client: MlflowClient, home: tuple[str, str], estimate: Any, index: int, prefix: str
) -> None:
    params = estimate.folds[index].selected  # by a tuner
    run_id = new_child(client, home, f"test set {index}", {}, params)
    writer = RunWriter(run_id, client)
    writer.log(fold_items(estimate, index, prefix))
    writer.require_store()
    client.set_terminated(run_id)


def resampling_items(estimate: Any, prefix: str = "") -> LogItems:
    """Return the metrics and tags of the run of an estimate.

    ``K`` and ``calibrated_K`` are the aggregated values, ``_low`` and ``_high`` the ends of their
    intervals; the reasons why something is missing are tags.
    """
    key = metric_key(estimate.measure, prefix)
    values = {key: estimate.vanilla, calibrated_key(key): estimate.calibrated}
    intervals = {
        key: estimate.vanilla_interval,
        calibrated_key(key): estimate.calibrated_interval,
    }
    metrics = {
        **{name: value for name, value in values.items() if value is not None},
        **{
            f"{name}_{end}": value
            for name, interval in intervals.items()
            if interval is not None
            for end, value in zip(("low", "high"), interval, strict=True)
        },
        "n_splits": float(estimate.n_splits),
        "n_train": float(estimate.n_train),
    }
    tags = {
        VERSION_TAG: __version__,
        RESAMPLING_TAG: estimate.strategy,
        "trueup.aggregate": estimate.aggregate,
        "mlflow.note.content": " ".join((f"{estimate}.", *(f"{r}." for r in estimate.reasons))),
    }
    return LogItems(key, metrics, tags)


def fold_items(estimate: Any, index: int, prefix: str = "") -> LogItems:
    """Return the metrics and tags of the nested run of one test set."""
    fold, key = estimate.folds[index], metric_key(estimate.measure, prefix)
    values = {key: fold.vanilla, calibrated_key(key): fold.calibrated}
    metrics = {
        **{name: value for name, value in values.items() if value is not None},
        "n_train": float(fold.n_train),
        "n_test": float(fold.n_test),
    }
    return LogItems(key, metrics, {VERSION_TAG: __version__, FOLD_TAG: str(index)})
