"""Columns of parquet and CSV files as arrays: the one place that reads files of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
_SHOWN_COLUMNS = 20


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
        missing, or the files disagree about the type of a column.
    """
    names = list(dict.fromkeys(columns))
    tables = [_read(path, names) for path in _paths(patterns)]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"files must agree about the types of their columns; got {_first_line(error)} "
            "Convert them to one type."
        ) from error
    return {name: _numpy(table.column(name)) for name in names}


def _paths(patterns: Sequence[str]) -> list[str]:
    found = []
    for pattern in patterns:
        matches = [pattern] if Path(pattern).is_file() else sorted(glob(pattern, recursive=True))
        if not matches:
            raise InvalidInputError(
                f"files must be paths or patterns of files; got {pattern!r}, which matches none. "
                "Check the path."
            )
        found += matches
    return found


def _read(path: str, names: list[str]) -> pa.Table:
    try:
        if path.endswith(_PARQUET):
            return _read_parquet(path, names)
        if path.endswith(_CSV):
            return _read_csv(path, names)
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"{path} must be a readable file; got {_first_line(error)} Check that it is complete."
        ) from error
    raise InvalidInputError(
        f"files must end in one of {', '.join((*_PARQUET, *_CSV))}; got {path!r}. Convert it."
    )


def _read_parquet(path: str, names: list[str]) -> pa.Table:
    with pyarrow.parquet.ParquetFile(path) as file:
        _require(names, file.schema_arrow.names, path)
        return file.read(columns=names)


def _read_csv(path: str, names: list[str]) -> pa.Table:
    with pyarrow.csv.open_csv(path) as reader:
        _require(names, reader.schema.names, path)
    options = pyarrow.csv.ConvertOptions(include_columns=names)
    return pyarrow.csv.read_csv(path, convert_options=options)


def _require(names: list[str], present: list[str], path: str) -> None:
    for name in names:
        if name not in present:
            shown = ", ".join(present[:_SHOWN_COLUMNS])
            more = "" if len(present) <= _SHOWN_COLUMNS else f" and {len(present)} in all"
            raise InvalidInputError(
                f"column {name!r} must be in {path}; got {shown}{more}. Check the spelling."
            )


def _numpy(values: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return np.asarray(values.to_numpy())


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return line if line.endswith(".") else f"{line}."
