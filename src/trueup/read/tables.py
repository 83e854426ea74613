"""Whole columns of parquet and CSV files, for what cannot be computed batch by batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, TrueupError
from trueup.read.arrow import convertible, ids_of_column, missing_rows_of
from trueup.read.columns import missing_values
from trueup.read.csv_files import CsvFile, Dialect, Role, line_of
from trueup.read.files import (
    FileBatch,
    Paths,
    column_names,
    file_batches,
    read_whole,
    require_rows,
    resolve,
    say_recognised,
)
from trueup.read.ids import IdTypes
from trueup.read.texts import typed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_INDEX = re.compile(r"(?:at index \(?|first at row )(\d+)(?:, \d+\)|, counted from 0)?$").search
_MAY_MISS: tuple[Role, ...] = ("level", "text", "any")


def read_columns(
    paths: Paths,
    columns: Iterable[str] | Mapping[str, Role],
    *,
    dialect: Dialect | None = None,
    id_type: str | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the named columns of all files, one array each, in the order of the files.

    Every file must have the columns, of types that agree; ``columns`` may say what each is read
    for, and ids become their 64-bit integers. Separators of CSV files are recognised by default.
    ``id_type`` ("integer" or "text") says what ids are, where files differ.
    """
    roles: dict[str, Role] = {}
    roles |= columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "any")
    files = resolve(paths)
    table = _table(files, roles, dialect or Dialect(), id_type)
    require_rows(table.num_rows, files)
    return {name: _numpy(name, table.column(name)) for name in roles}


def read_file(
    path: Path, *, texts: Sequence[str | None] = (), dialect: Dialect | None = None
) -> pa.Table:
    """Return all columns of one parquet or CSV file; ``texts`` are ids, which stay text."""
    names = column_names(path, dialect)
    roles: dict[str, Role] = {name: "text" if name in texts else "any" for name in names}
    return _table([path], roles, dialect or Dialect(), None)


def read_frame(path: Path) -> pd.DataFrame:
    """Return all columns of one parquet or CSV file as a data frame; see ``read_file``."""
    table = read_file(path)
    with convertible(str(path)):
        frame: pd.DataFrame = table.to_pandas()
    return frame


@contextmanager
def rows_of_files(paths: Paths, column: str, dialect: Dialect | None = None) -> Iterator[None]:
    """Say of a row that is refused by its index in all rows where it is in which file.

    ``column`` is any column of the files, by which rows are counted.
    """
    try:
        yield
    except TrueupError as error:
        index = _INDEX(error.got or "")
        if index is None:
            raise
        place = _place_of(int(index[1]), file_batches(resolve(paths), {column: "text"}, dialect))
        raise type(error)(error.rule, error.got, f"{error.mend} It is {place}.") from error


def _place_of(row: int, batches: Iterator[FileBatch]) -> str:
    for batch in batches:
        if row < batch.table.num_rows:
            return batch.place(row)
        row -= batch.table.num_rows
    return f"row {row} after the last one"


def _table(
    files: Sequence[Path], roles: Mapping[str, Role], dialect: Dialect, id_type: str | None
) -> pa.Table:
    import pyarrow as pa

    read = [read_whole(file, roles, dialect) for file in files]
    tables, csvs = [table for table, _ in read], [csv for _, csv in read]
    say_recognised([csv for csv in csvs if csv is not None and csv.was_recognised])
    ids = IdTypes(id_type)
    columns: dict[str, list[pa.ChunkedArray]] = {}
    for name, role in roles.items():
        parts = [table.column(name) for table in tables]
        with convertible(name, parts[0].type):
            for part in parts:
                part.validate(full=True)  # text of a damaged parquet file may be no UTF-8
        if role not in _MAY_MISS:
            _refuse_missing(name, parts, files, csvs)
        if role in ("label", "level", "any"):
            parts = _typed(parts, csvs)
        columns[name] = _as_ids(parts, files, ids) if role == "id" else parts
    parts_of = [pa.table({n: c[i] for n, c in columns.items()}) for i in range(len(files))]
    try:
        return pa.concat_tables(parts_of, promote_options="permissive")
    except pa.ArrowException as error:
        line = str(error).strip().partition("\n")[0].rstrip(".")
        raise InvalidInputError(
            "files must agree about the types of their columns",
            str(line),
            "Convert them to one type.",
        ) from error


def _typed(
    parts: Sequence[pa.ChunkedArray], csvs: Sequence[CsvFile | None]
) -> list[pa.ChunkedArray]:
    """Give the cells of CSV files the type that all of them have."""
    given = [csv is not None for csv in csvs]
    cells = [part for part, is_cells in zip(parts, given, strict=True) if is_cells]
    read = iter(typed(cells, [csv.decimal for csv in csvs if csv is not None]))
    return [next(read) if is_cells else p for p, is_cells in zip(parts, given, strict=True)]


def _as_ids(
    parts: Sequence[pa.ChunkedArray], files: Sequence[Path], types: IdTypes
) -> list[pa.ChunkedArray]:
    import pyarrow as pa

    read = []
    for part, file in zip(parts, files, strict=True):
        ids, are_integers = ids_of_column(part.combine_chunks())
        types.add(file, are_integers, len(ids))
        read.append(pa.chunked_array([pa.array(ids)]))
    types.check()
    return read


def _refuse_missing(
    name: str,
    parts: Sequence[pa.ChunkedArray],
    files: Sequence[Path],
    csvs: Sequence[CsvFile | None],
) -> None:
    for part, file, csv in zip(parts, files, csvs, strict=True):
        missing = missing_rows_of(part, is_cells=csv is not None)
        if len(missing):
            first = int(missing[0])
            line = None if csv is None else line_of(file, first, csv.sep)
            raise missing_values(name, len(missing), first, file, line)


def _numpy(name: str, values: pa.ChunkedArray) -> NDArray[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    with convertible(name, values.type):
        return np.asarray(values.to_numpy())
