"""Evaluate predictions in parquet and CSV files, larger than memory or not.

Needs the extra ``[files]``. The files are read batch by batch into a summary, so memory holds one
batch of the columns named, never a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.read.arrow import array_of_column, levels_of_column
from trueup.read.notices import Notices
from trueup.scoring.result import Evaluation
from trueup.splits import CrossFit, Split
from trueup.summaries import LossSummary, summary_of

if TYPE_CHECKING:
    import pyarrow as pa

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_DEFAULT_SPLIT = CrossFit()
_BATCH_ROWS = 1 << 20
_CSV_BLOCK = 16 << 20
PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
_SHOWN_COLUMNS = 20


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

    Raises
    ------
    InvalidInputError
        If no file matches, a column is missing or holds missing values, or a value is refused;
        the message names the file and the rows.
    ImportError
        If pyarrow is not installed.
    """
    columns = _Columns(y_true, y_proba, y_logit, row_id, sample_weight, tuple(fields))
    files = resolve(paths)
    summary, notices = summary_of(loss, split), Notices()
    n_rows = 0
    for batch in _batches(files, columns, threads):
        n_rows += batch.table.num_rows
        notices.add(_update(summary, batch, columns, labels, threads))
        if on_batch is not None:
            on_batch(batch.table.num_rows)
    require_rows(n_rows, files)
    notices.warn()
    return summary.compute()


def resolve(paths: Paths) -> list[Path]:
    """Return the files that paths and globs name, each once.

    Raises
    ------
    InvalidInputError
        If a path or a glob names no file, or one of another type.
    """
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    found: dict[Path, None] = {}
    for path in [fspath(path) for path in given]:
        matches = [path] if Path(path).is_file() else sorted(glob(path, recursive=True))
        files = [Path(match) for match in matches if Path(match).is_file()]
        if not files:
            raise InvalidInputError(
                f"paths must name files; got {path!r}, which matches none. Check the path."
            )
        found |= dict.fromkeys(files)
    for file in found:
        if not file.name.endswith(PARQUET + _CSV):
            raise InvalidInputError(
                f"paths must end in one of {', '.join(PARQUET + _CSV)}; got {file.name!r}. "
                "Convert the file to parquet."
            )
    return list(found)


@dataclass(frozen=True)
class _Columns:
    y_true: str
    y_pred: str | None
    y_logit: str | None
    row_id: str | None
    sample_weight: str | None
    fields: tuple[str, ...]

    def arguments(self) -> dict[str, str]:
        """Return the name of the column of each argument of ``update``."""
        names = ("y_true", "y_pred", "y_logit", "row_id", "sample_weight")
        return {name: column for name in names if (column := getattr(self, name)) is not None}

    def all(self) -> list[str]:
        return list(dict.fromkeys([*self.arguments().values(), *self.fields]))


@dataclass(frozen=True)
class _FileBatch:
    table: pa.RecordBatch
    file: Path
    first_row: int


def _batches(files: list[Path], columns: _Columns, threads: int) -> Iterator[_FileBatch]:
    arrow = _pyarrow("lib")
    for file in files:
        first_row = 0
        read = _read_parquet if file.name.endswith(PARQUET) else _read_csv
        try:
            for table in read(file, columns.all(), threads > 1):
                yield _FileBatch(table, file, first_row)
                first_row += table.num_rows
        except arrow.ArrowException as error:
            raise InvalidInputError(
                f"{file} must be a readable file; got {str(error).splitlines()[0]!r}. "
                "Check that it is complete."
            ) from error


def _read_parquet(file: Path, columns: list[str], use_threads: bool) -> Iterator[pa.RecordBatch]:
    parquet = _pyarrow("parquet")
    with parquet.ParquetFile(file) as reader:
        require_columns(columns, reader.schema_arrow.names, file)
        for group in range(reader.num_row_groups):  # over all groups at once, the pages pile up
            yield from reader.iter_batches(
                _BATCH_ROWS, row_groups=[group], columns=columns, use_threads=use_threads
            )


def _read_csv(file: Path, columns: list[str], use_threads: bool) -> Iterator[pa.RecordBatch]:
    csv = _pyarrow("csv")
    options = csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=use_threads)
    with csv.open_csv(str(file), read_options=options) as reader:
        require_columns(columns, reader.schema.names, file)
    convert = csv.ConvertOptions(include_columns=columns)
    with csv.open_csv(str(file), read_options=options, convert_options=convert) as reader:
        yield from reader


def _pyarrow(module: str) -> Any:
    try:
        return import_module(f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError(
            "Reading files needs pyarrow. Install it with: pip install 'trueup[files]'"
        ) from error


def require_columns(wanted: list[str], present: list[str], file: Path) -> None:
    """Refuse a file that lacks a column, naming those it has."""
    for name in wanted:
        if name not in present:
            shown = ", ".join(present[:_SHOWN_COLUMNS])
            more = "" if len(present) <= _SHOWN_COLUMNS else f" and {len(present)} in all"
            raise InvalidInputError(
                f"column {name!r} must be in {file}; got {shown}{more}. Check the spelling."
            )


def require_rows(n_rows: int, files: list[Path]) -> None:
    """Refuse files that hold no rows between them, naming the first."""
    if n_rows == 0:
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        raise UnscorableInputError(
            f"files must hold at least one row; got none in {files[0]}{others}. "
            "Check what wrote them."
        )


def _update(
    summary: LossSummary,
    batch: _FileBatch,
    columns: _Columns,
    labels: Sequence[Any] | None,
    threads: int,
) -> Notices:
    try:
        values = {
            name: array_of_column(batch.table, column)
            for name, column in columns.arguments().items()
        }
        fields = {name: levels_of_column(batch.table, name) for name in columns.fields}
        return summary.add(values, labels, fields or None, threads)
    except InvalidInputError as error:
        last = batch.first_row + batch.table.num_rows - 1
        raise InvalidInputError(
            f"{error} The index counts from row {batch.first_row} of {batch.file} "
            f"(the batch ends with row {last})."
        ) from error
