"""One line that logs the calibrated metric beside the vanilla one, and the levels of fields."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import mlflow

import trueup
from trueup import Evaluation
from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import get_loss
from trueup.read.targets import read_binary_labels
from trueup_mlflow.log.arguments import check_options, check_place
from trueup_mlflow.write.failures import describe, told
from trueup_mlflow.write.items import evaluation_items, figure_file, metric_key
from trueup_mlflow.write.writer import Point, RunWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure


from typing import TYPE_CHECKING

import pyarrow as pa

from trueup import FieldCalibration
from trueup.redact import without_credentials
from trueup_mlflow.write.items import cells_key, table_file

if TYPE_CHECKING:
    from PIL.Image import Image


def log_evaluation(
    y_true: Any,
    y_pred: Any = None,
    *,
    prefix: str = "",
    step: int | None = None,
    run_id: str | None = None,
    model_id: str | None = None,
    dataset: Any = None,
    client: Any = None,
    figures: bool = False,
    **options: Any,
) -> Evaluation | None:
    """Evaluate predictions and log the result to a run with one request.

    Parameters
    ----------
    y_true, y_pred : array-like
        As in :func:`trueup.evaluate`.
    prefix : str
        Put before the loss in each key: ``prefix="val_"`` logs ``val_log_loss``,
        ``calibrated_val_log_loss`` and so on.
    step : int, optional
        Step of the metrics; 0 by default.
    run_id : str, optional
        The run, which may be finished; by default the active run, and a new one where none is
        active.
    model_id : str, optional
        LoggedModel that the metrics belong to, the active model by default; it becomes an input of
        the run.
    dataset : mlflow.data.dataset.Dataset, optional
        Data set that the metrics belong to.
    client : mlflow.tracking.MlflowClient, optional
        Client of another store than the current one.
    figures : bool, default False
        Also log the reliability diagram of two classes, ``trueup/reliability_<K>.png``.
    **options
        Every keyword of :func:`trueup.evaluate`.

    Returns
    -------
    Evaluation or None
        What was computed, whether or not it could be logged; None where the metric is undefined on
        these rows, or the training has diverged and predictions are not finite. That is a
        ``TrueupWarning`` and the tag ``trueup.skipped.<K>``.

    Raises
    ------
    InvalidInputError
        If an argument is invalid: the mistake is in the call, and nothing has been logged.
    TypeError
        If :func:`trueup.evaluate` has no such keyword.

    Notes
    -----
    ``K`` = prefix + loss. The run gains the metrics ``K``, ``calibrated_K``, ``bias_term_K`` (one
    for each class with ``_<i>`` for several classes), ``bias_cost_K``, and the tags
    ``trueup.split``, ``trueup.fingerprint.K`` and ``trueup.version``. With fields it also gains
    ``field_ece_<field>``, ``field_rce_<field>`` and ``field_floor_<field>``, the table of all
    levels ``trueup/fields_<K>.parquet`` and a figure of the worst, ``trueup/fields_<K>.png``, both
    of the latest call; with a step its table stays as ``trueup/fields_<K>_step<step>.parquet``. No
    other failure than an invalid argument ends the user's run.

    Examples
    --------
    >>> import mlflow
    >>> from trueup_mlflow import log_evaluation
    >>> with mlflow.start_run() as run:
    ...     evaluation = log_evaluation([0, 1] * 50, [0.3, 0.8] * 50, prefix="val_")
    >>> logged = mlflow.get_run(run.info.run_id).data.metrics
    >>> logged["calibrated_val_log_loss"] == evaluation.calibrated
    True
    """
    check_options(log_evaluation, options)
    check_place(prefix=prefix, step=step, run_id=run_id, model_id=model_id, dataset=dataset)
    try:
        evaluation = trueup.evaluate(y_true, y_pred, **options)
    except Exception as failure:  # undefined on these rows, or a failure of ours
        if isinstance(failure, InvalidInputError) and not isinstance(failure, UnscorableInputError):
            raise
        with suppress(Exception), told("nothing was logged"):
            key = metric_key(get_loss(options.get("loss", "log_loss")).name, prefix)
            RunWriter(run_id=run_id, client=client).skip(key, describe(failure))
        return None
    with suppress(Exception), told("not all of the evaluation was logged"):
        writer = RunWriter(run_id=run_id, client=client)
        items = evaluation_items(evaluation, prefix=prefix)
        model_id = model_id or mlflow.get_active_model_id()
        writer.log(items, Point(step=step or 0, model_id=model_id, dataset=dataset))
        log_fields(evaluation, items.key, writer, step)
        if figures and evaluation.spec.n_classes == 2:
            writer.log_figure(
                lambda: _reliability(y_true, y_pred, options),
                figure_file("reliability", items.key),
                items.key,
            )
    return evaluation


def _reliability(y_true: Any, y_pred: Any, options: Mapping[str, Any]) -> Figure:
    from trueup_mlflow.write.figures import reliability_diagram

    return reliability_diagram(
        read_binary_labels(y_true, options.get("labels")),
        y_pred,
        y_logit=options.get("y_logit"),
        sample_weight=options.get("sample_weight"),
    )


def log_fields(
    evaluation: Evaluation, key: str, writer: RunWriter, step: int | None = None
) -> bool:
    """Write ``trueup/fields_<K>.parquet`` and ``trueup/fields_<K>.png``; True if nothing failed.

    Both are those of the latest call. With a step its table is kept as
    ``trueup/fields_<K>_step<step>.parquet`` too.
    """
    fields = evaluation.fields
    if not fields:
        return True
    skip_key = cells_key(key)
    stems = [key] if step is None else [key, f"{key}_step{step}"]
    tables = [
        writer.log_table(lambda: cells_table(fields), table_file("fields", stem), skip_key)
        for stem in stems
    ]
    figure = writer.log_image(lambda: _draw(fields), figure_file("fields", key), skip_key)
    return all(tables) and figure


def cells_table(fields: Mapping[str, FieldCalibration]) -> pa.Table:
    """Return one row for each field and level: ``field`` and the columns of ``FieldCells``."""
    tables = []
    for name, measured in fields.items():
        names = pa.array([without_credentials(name)] * len(measured.cells.level), pa.string())
        tables.append(pa.table({"field": names, **measured.cells.to_columns()}))
    return pa.concat_tables(tables)


def _draw(fields: Mapping[str, FieldCalibration]) -> Image:
    from trueup_mlflow.write.field_figure import worst_cells

    return worst_cells(fields)
