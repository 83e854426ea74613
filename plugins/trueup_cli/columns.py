"""Whole columns of parquet and CSV files, for what cannot be computed batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.evaluation.files import PARQUET, require_columns, require_rows, resolve


def read_columns(patterns: Sequence[str], columns: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the named columns of all files, one array each, in the order of the files.

    Parameters
    ----------
    patterns : sequence of str
        Paths or glob patterns of parquet and CSV files; the files of a pattern are sorted by name.
    columns : iterable of str
        Names of columns, which every file must have.

    Raises
    ------
    InvalidInputError
        If a pattern matches nothing, a file is neither parquet nor CSV or unreadable, a column is
        missing, no file has a row, or the files disagree about the type of a column.
    """
    names = list(dict.fromkeys(columns))
    paths = resolve(patterns)
    tables = [_read(path, names) for path in paths]
    require_rows(sum(table.num_rows for table in tables), paths)
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"files must agree about the types of their columns; got {_first_line(error)} "
            "Convert them to one type."
        ) from error
    return {name: _numpy(table.column(name)) for name in names}


def _read(path: Path, names: list[str]) -> pa.Table:
    try:
        return (_read_parquet if path.name.endswith(PARQUET) else _read_csv)(path, names)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"{path} must be a readable file; got {_first_line(error)} Check that it is complete."
        ) from error


def _read_parquet(path: Path, names: list[str]) -> pa.Table:
    with pyarrow.parquet.ParquetFile(path) as file:
        require_columns(names, file.schema_arrow.names, path)
        return file.read(columns=names)


def _read_csv(path: Path, names: list[str]) -> pa.Table:
    with pyarrow.csv.open_csv(str(path)) as reader:
        require_columns(names, reader.schema.names, path)
    options = pyarrow.csv.ConvertOptions(include_columns=names)
    return pyarrow.csv.read_csv(str(path), convert_options=options)


def _numpy(values: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return np.asarray(values.to_numpy())


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return line if line.endswith(".") else f"{line}."
