"""Summarise each partition where it lies; merge the summaries on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trueup.errors import InvalidInputError
from trueup.read.arrow import array_of_column, levels_of_column
from trueup.read.frames import require_columns
from trueup.scoring.result import Evaluation
from trueup.splits import CrossFit, HoldOut, Split
from trueup.summaries import from_bytes, summary_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DEFAULT_SPLIT = CrossFit()


@dataclass(frozen=True)
class Query:
    """What a partition needs to know; it travels to the workers."""

    loss: str
    split: Split
    labels: tuple[Any, ...] | None
    columns: dict[str, str]
    fields: tuple[str, ...]


def evaluate(
    df: DataFrame,
    *,
    y_true: str,
    y_proba: str | None = None,
    y_logit: str | None = None,
    row_id: str | None = None,
    sample_weight: str | None = None,
    fields: Sequence[str] = (),
    loss: str = "log_loss",
    split: Split = _DEFAULT_SPLIT,
    labels: Sequence[Any] | None = None,
) -> Evaluation:
    """Return the evaluation of the rows of a Spark data frame, in one pass.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Validation rows.
    y_true, y_proba, y_logit, row_id, sample_weight : str
        Names of columns; exactly one of ``y_proba`` (or the predicted target of a regression) and
        ``y_logit``. ``row_id`` must be given with ``CrossFit`` and ``HoldOut``: rows of a data
        frame have no position.
    fields : sequence of str
        Columns over whose levels the calibration error is measured.
    loss : {"log_loss", "brier_score", "mean_squared_error", "poisson_deviance"}
        What is scored.
    split : CrossFit, HoldOut or InSample, default CrossFit(5)
        Which rows fit the bias and which are scored.
    labels : sequence, optional
        The two classes, the positive one last.

    Returns
    -------
    trueup.Evaluation
        Equal to that of the collected rows to 1e-11. With ``InSample`` and without ``row_id`` the
        fingerprint depends on the partitions.

    Raises
    ------
    trueup.errors.InvalidInputError
        If a column is missing or ``row_id`` is needed. A value that is refused on a worker comes
        as Spark's ``PythonException`` with the message in it.

    Notes
    -----
    A partition sends its summary of at most 50 KiB a fold, and for each field as much as its
    levels take; rows stay where they are.

    Examples
    --------
    With a session of Spark, which needs Java:

    >>> from trueup_spark import evaluate
    >>> rows = spark.createDataFrame([(i, i % 2, 0.4) for i in range(200)], ["id", "click", "p"])
    >>> round(evaluate(rows, y_true="click", y_proba="p", row_id="id").calibrated, 3)
    0.7
    """
    if row_id is None and isinstance(split, (CrossFit, HoldOut)):
        raise InvalidInputError(
            f"row_id must be given with {split!r}",
            "None",
            "Name a column that identifies rows, or pass split=InSample().",
        )
    given = {
        "y_true": y_true,
        "y_pred": y_proba,
        "y_logit": y_logit,
        "row_id": row_id,
        "sample_weight": sample_weight,
    }
    columns = {argument: name for argument, name in given.items() if name is not None}
    query = Query(loss, split, None if labels is None else tuple(labels), columns, tuple(fields))
    summary = summary_of(loss, split)
    selected = df.select(*_require(df, [*columns.values(), *fields]))
    for row in selected.mapInArrow(partial(summarise, query), "summary binary").collect():
        summary.merge(from_bytes(bytes(row["summary"])))
    return summary.compute()


def _require(df: DataFrame, names: Sequence[str]) -> list[str]:
    require_columns(names, df.columns, "the data frame")
    return list(dict.fromkeys(names))


def summarise(query: Query, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the summary of one partition; nothing for a partition without rows."""
    summary = summary_of(query.loss, query.split)
    for batch in batches:
        values: dict[str, Any] = {
            argument: array_of_column(batch, name) for argument, name in query.columns.items()
        }
        fields = {name: levels_of_column(batch, name) for name in query.fields}
        summary.update(**values, labels=query.labels, fields=fields or None)
    if summary.n:
        yield pa.RecordBatch.from_pydict({"summary": pa.array([summary.to_bytes()], pa.binary())})
