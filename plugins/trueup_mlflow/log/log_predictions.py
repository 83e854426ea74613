"""Store predictions in a run, so that metrics can be computed from them later."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

import mlflow
import numpy as np

import trueup
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.read.columns import as_array
from trueup_mlflow.log.arguments import check_options, check_place
from trueup_mlflow.log.prediction_table import Place, write_call
from trueup_mlflow.write.failures import describe, told, warn
from trueup_mlflow.write.items import ARTIFACT_FOLDER
from trueup_mlflow.write.writer import RunWriter

PREFIX_OF_FILES = "predictions_"


def log_predictions(
    y_true: Any,
    y_pred: Any = None,
    *,
    name: str = "val",
    prefix: str = "",
    step: int | None = None,
    run_id: str | None = None,
    model_id: str | None = None,
    dataset: Any = None,
    client: Any = None,
    **options: Any,
) -> str | None:
    """Store predictions and labels as a parquet artifact of a run.

    :func:`trueup_mlflow.backfill` computes from it, in a finished run, what
    :func:`trueup_mlflow.log_evaluation` would have logged: the table keeps every argument.

    Parameters
    ----------
    y_true, y_pred : array-like
        As in :func:`trueup.evaluate`.
    name : str, default "val"
        Name of the rows, part of the name of the file: letters, digits, ``_``, ``-`` and ``.``.
    prefix : str
        Put before the loss in the keys of the metrics; two tables of one run whose keys are equal
        need different prefixes.
    step : int, optional
        Step of the metrics; each step has a file of its own.
    run_id, model_id, dataset, client
        As in :func:`trueup_mlflow.log_evaluation`. Of the data set, name and digest are kept.
    **options
        Every keyword of :func:`trueup.evaluate`; the loss by its name, and a split of trueup.

    Returns
    -------
    str or None
        Path of the artifact in the run, such as ``trueup/predictions_val.parquet``; None where it
        could not be written, which is a ``TrueupWarning``.

    Raises
    ------
    InvalidInputError
        If an argument is invalid: the mistake is in the call, and nothing has been stored.
    TypeError
        If :func:`trueup.evaluate` has no such keyword.

    Notes
    -----
    Rows on which the metric is undefined are stored all the same, with a ``TrueupWarning``: the
    backfill gives them a tag with the reason and no metric. Columns and fields keep their
    names as they are given, credentials included: the backfill finds them by name.

    Examples
    --------
    >>> import mlflow
    >>> from trueup_mlflow import log_predictions
    >>> with mlflow.start_run():
    ...     log_predictions([0, 1] * 50, [0.3, 0.8] * 50, name="val")
    'trueup/predictions_val.parquet'
    """
    check_place(prefix=prefix, step=step, run_id=run_id, model_id=model_id, dataset=dataset)
    if not (isinstance(name, str) and re.fullmatch(r"[\w\-.]+", name, re.ASCII)):
        raise InvalidInputError(
            "name must be letters, digits, '_', '-' or '.'", repr(name), "Rename the rows."
        )
    stem = f"{PREFIX_OF_FILES}{name}{'' if step is None else f'_step{step}'}"
    check_options(log_predictions, options)
    try:  # bad input is refused before it is stored; rows that can't be evaluated are stored
        trueup.evaluate(y_true, y_pred, **options)
    except UndefinedMetricError as failure:  # also where predictions are not finite
        with suppress(Exception):
            warn(_kept_without_value(stem, failure, y_pred, options.get("y_logit")))
    except InvalidInputError:
        raise
    except Exception as failure:  # a failure of ours
        with suppress(Exception):
            warn(f"the rows of {stem} could not be evaluated: {describe(failure)}")
    with suppress(Exception), told(f"the rows of {stem} were not stored"):
        place = Place(
            prefix=prefix,
            step=step or 0,
            timestamp=time.time_ns() // 1_000_000,
            model_id=model_id or mlflow.get_active_model_id(),
            dataset_name=None if dataset is None else dataset.name,
            dataset_digest=None if dataset is None else dataset.digest,
        )
        writer = RunWriter(run_id=run_id, client=client)
        if writer.log_table(
            lambda: write_call(y_true, y_pred, place, **options), f"{stem}.parquet", stem
        ):
            return f"{ARTIFACT_FOLDER}/{stem}.parquet"
    return None


def _kept_without_value(stem: str, failure: Exception, *predictions: Any) -> str:
    """Say what became of rows on which the metric is undefined, and how many are to blame."""
    (given,) = (values for values in predictions if values is not None)
    finite = np.isfinite(as_array(given, "predictions").astype(np.float64))
    n_bad = int(np.count_nonzero(~(finite.all(axis=1) if finite.ndim == 2 else finite)))
    bad = f", {n_bad} of them without a finite prediction" if n_bad else ""
    return (
        f"the {len(finite)} rows of {stem} are kept{bad}, but trueup backfill will skip them: "
        f"{describe(failure)} Or log the rows that have a value under another name."
    )
