"""Log a comparison of calibrators to an MLflow run."""

from __future__ import annotations

from typing import Any

from trueup.calibrators import CalibratorTable
from trueup_mlflow.write.decision_figures import guard_figure
from trueup_mlflow.write.decision_items import (
    CALIBRATOR_FIGURE,
    CALIBRATOR_TABLE,
    calibrator_items,
    calibrator_text,
)
from trueup_mlflow.write.failures import refusing_only
from trueup_mlflow.write.writer import RunWriter


@refusing_only
def log_calibrators(
    table: CalibratorTable, *, prefix: str = "", run_id: str | None = None, client: Any = None
) -> bool | None:
    """Log the table's numbers as metrics, the guard's verdicts as tags, the table as Markdown.

    Where the guard judged by time, the Markdown tells what each origin said, and a figure shows it.

    Parameters
    ----------
    table : CalibratorTable
        Result of ``trueup.calibrators.compare_calibrators``.
    prefix : str
        Put before each metric key.
    run_id : str, optional
        The run; by default the active one, or a new one.
    client : mlflow.tracking.MlflowClient, optional
        Client of the store.

    Returns
    -------
    bool or None
        Whether all was written; a failure is a warning and a tag, never an error.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from trueup.calibrators import compare_calibrators
    >>> from trueup_mlflow import log_calibrators
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.uniform(0.1, 0.6, 2_000), rng.choice(["news", "shop"], 2_000)
    >>> click = rng.random(2_000) < p
    >>> table = compare_calibrators(click, p, {"site": site}, field="site", shuffle=True)
    >>> with mlflow.start_run():
    ...     log_calibrators(table)
    True
    """
    writer, items = RunWriter(run_id, client), calibrator_items(table, prefix)
    by_time = {name: d for name, d in table.decisions().items() if d.by_time}
    written = writer.log(items) and writer.log_text(
        calibrator_text(table, by_time), CALIBRATOR_TABLE, items.key
    )
    if not by_time:
        return written
    return written and writer.log_figure(
        lambda: guard_figure(by_time), CALIBRATOR_FIGURE, items.key
    )
