"""Evaluate predictions in parquet and CSV files, larger than memory or not.

Needs the extra ``[files]``. The files are read batch by batch into a summary, so memory holds one
batch of the columns named, never a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.evaluation.evaluate import suggesting
from trueup.losses import get_loss
from trueup.read.arrow import (
    array_of_column,
    ids_of_column,
    labels_of_cells,
    levels_of_column,
    missing_rows_of,
)
from trueup.read.columns import missing_values
from trueup.read.csv_files import Dialect, Role
from trueup.read.files import FileBatch, Paths, file_batches, require_rows, resolve
from trueup.read.ids import IdTypes
from trueup.read.rows import Notices
from trueup.scoring.result import Evaluation
from trueup.splits import CrossFit, Split
from trueup.summaries import LossSummary, summary_of

_DEFAULT_SPLIT = CrossFit()
_INDEX = re.compile(r"at index (\d+)$").search


@suggesting
def evaluate_files(
    paths: Paths,
    *,
    y_true: str,
    y_proba: str | None = None,
    y_logit: str | None = None,
    loss: str = "log_loss",
    split: Split = _DEFAULT_SPLIT,
    labels: Sequence[Any] | None = None,
    row_id: str | None = None,
    sample_weight: str | None = None,
    fields: Sequence[str] = (),
    threads: int = 1,
    on_batch: Callable[[int], object] | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    id_type: str | None = None,
) -> Evaluation:
    """Return the evaluation of the predictions in files, read in one pass.

    Parameters
    ----------
    paths : path, glob or sequence of these
        Parquet (``.parquet``, ``.pq``) and CSV files (``.csv``, also compressed). The matches of a
        glob are read in the order of their names.
    y_true, y_proba, y_logit, row_id, sample_weight : str
        Names of the columns; exactly one of ``y_proba`` (or the predicted target of a regression)
        and ``y_logit``. Without ``row_id`` a row's id is its position over all files.
    loss : {"log_loss", "brier_score", "mean_squared_error", "poisson_deviance"}
        What is scored.
    split : CrossFit, HoldOut or InSample, default CrossFit(5)
        Which rows fit the bias and which are scored.
    labels : sequence, optional
        The two classes, the positive one last.
    fields : sequence of str
        Columns over whose levels the calibration error is measured.
    threads : int, default 1
        Threads that summarise a batch; more than one also lets pyarrow decode in parallel.
    on_batch : callable, optional
        Called with the number of rows of each batch after it was read, for a progress bar.
    sep, decimal : str, optional
        What separates cells and decimals of CSV files; recognised by default, and said.
    id_type : {"integer", "text"}, optional
        What the ids are. By default files that disagree are refused; "text" allows it. The id of
        a row does not depend on it.

    Raises
    ------
    InvalidInputError
        If no file matches, a column is missing or holds missing values, or a value is refused;
        the message names the file and the rows.
    ImportError
        If pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from trueup import evaluate_files
    >>> file = Path(tempfile.mkdtemp()) / "val.csv"
    >>> pd.DataFrame({"click": [0, 1] * 50, "p": [0.3, 0.6] * 50}).to_csv(file, index=False)
    >>> evaluate_files(file, y_true="click", y_proba="p").n
    100
    """
    if y_true in (y_proba, y_logit):
        raise InvalidInputError(
            "y_true must be another column than the predictions",
            repr(y_true),
            "Name the column of each.",
        )
    if row_id is not None and row_id in (y_true, y_proba, y_logit, sample_weight):
        raise InvalidInputError(
            "row_id must be another column than labels, predictions and weights",
            repr(row_id),
            "Name the column of each.",
        )
    named = {"y_true": y_true, "y_pred": y_proba, "y_logit": y_logit, "row_id": row_id}
    named |= {"sample_weight": sample_weight}
    columns = {argument: name for argument, name in named.items() if name is not None}
    files = resolve(paths)
    summary, notices, id_types = summary_of(loss, split), Notices(), IdTypes(id_type)
    reader = _Reader(columns, tuple(fields), labels, id_types)
    dialect, n_rows = Dialect(sep, decimal), 0
    batches = file_batches(files, reader.roles(loss), dialect, use_threads=threads > 1)
    for batch in batches:
        n_rows += batch.table.num_rows
        reader.refuse_missing(batch, batches)
        notices.add(_update(summary, batch, reader, threads))
        if on_batch is not None:
            on_batch(batch.table.num_rows)
    require_rows(n_rows, files)
    id_types.check()
    notices.warn()
    return summary.compute()


@dataclass(frozen=True)
class _Reader:
    """From the columns of a batch to what a summary is updated with."""

    columns: Mapping[str, str]
    """The name of the column of each argument of ``update``."""
    field_names: tuple[str, ...]
    labels: Sequence[Any] | None
    id_types: IdTypes

    def roles(self, loss: str) -> dict[str, Role]:
        is_class = get_loss(loss).task == "binary"
        known: dict[str, Role] = {"y_true": "label" if is_class else "number", "row_id": "id"}
        levels: dict[str, Role] = dict.fromkeys(self.field_names, "level")
        return levels | {name: known.get(one, "number") for one, name in self.columns.items()}

    def refuse_missing(self, batch: FileBatch, further: Iterator[FileBatch]) -> None:
        """Refuse a batch that misses a value, counting those of the whole file."""
        for name in self.columns.values():
            missing = _missing(batch, name)
            if len(missing):
                of_file = takewhile(lambda other: other.file == batch.file, further)
                count = len(missing) + sum(len(_missing(other, name)) for other in of_file)
                first = int(missing[0])
                position, line = batch.first_row + first, batch.line(first)
                raise missing_values(name, count, position, batch.file, line)

    def arguments(self, batch: FileBatch) -> dict[str, Any]:
        return {
            argument: self._argument(argument, name, batch)
            for argument, name in self.columns.items()
        }

    def _argument(self, argument: str, name: str, batch: FileBatch) -> Any:
        column = batch.table.column(name)
        if argument == "row_id":
            ids, are_integers = ids_of_column(column)
            self.id_types.add(batch.file, are_integers, len(ids))
            return ids
        if argument == "y_true" and batch.csv is not None and hasattr(column, "dictionary"):
            return labels_of_cells(column, self.labels, batch.csv.decimal)
        return array_of_column(batch.table, name)

    def fields(self, batch: FileBatch) -> dict[str, Any]:
        return {
            name: levels_of_column(batch.table, name, is_cells=batch.csv is not None)
            for name in self.field_names
        }


def _missing(batch: FileBatch, name: str) -> NDArray[np.intp]:
    return missing_rows_of(batch.table.column(name), is_cells=batch.csv is not None)


def _update(summary: LossSummary, batch: FileBatch, reader: _Reader, threads: int) -> Notices:
    try:
        fields = reader.fields(batch)
        return summary.add(reader.arguments(batch), reader.labels, fields or None, threads)
    except InvalidInputError as error:
        index = _INDEX(error.got or "")
        place = f"in {batch.file}" if index is None else batch.place(int(index[1]))
        if error.got is None:
            raise InvalidInputError(f"{error} It is {place}.") from error
        raise InvalidInputError(error.rule, error.got, f"{error.mend} It is {place}.") from error
