"""Parquet and CSV files: found, opened and read, batch by batch or as a whole.

Needs the extra ``[files]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.arguments import raisable_limit
from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.extras import needed_by
from trueup.read.csv_files import CsvFile, Dialect, Role, line_of, open_csv_file, unreadable
from trueup.read.frames import require_columns
from trueup.user_warning import warn_user

if TYPE_CHECKING:
    import pyarrow as pa

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")
_BATCH_ROWS = 1 << 20
_CELL_BYTES = 8
_GROWTH = 16  # of an honest file: repeated values take little room in parquet

LIMIT_VARIABLE = "TRUEUP_MAX_TABLE_BYTES"
"""Environment variable: bytes up to which any file is read as a whole."""

_DEFAULT_LIMIT = 512 * 2**20


@dataclass(frozen=True)
class FileBatch:
    """Rows of a file, the first at a position in it; ``csv`` is set where cells are text."""

    table: pa.RecordBatch
    file: Path
    first_row: int
    csv: CsvFile | None

    def line(self, row: int) -> int | None:
        """Return the line of a CSV file on which a row of the batch ends."""
        return None if self.csv is None else line_of(self.file, self.first_row + row, self.csv.sep)

    def place(self, row: int) -> str:
        """Say where a row of the batch lies."""
        line = self.line(row)
        place = f"row {self.first_row + row} of {self.file}, counted from 0"
        return place if line is None else f"{place} (line {line} of the file)"


def resolve(paths: Paths) -> list[Path]:
    """Return the files that paths and globs name, each once; refuse other types and no files."""
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    found: dict[Path, None] = {}
    for path in [fspath(path) for path in given]:
        matches = [path] if Path(path).is_file() else sorted(glob(path, recursive=True))
        files = [Path(match) for match in matches if Path(match).is_file()]
        if not files:
            raise InvalidInputError(
                "paths must name files", f"{path!r}, which matches none", "Check the path."
            )
        found |= dict.fromkeys(files)
    for file in found:
        if any("\ud800" <= letter <= "\udfff" for letter in str(file)):
            raise InvalidInputError(
                "paths must be text in UTF-8", repr(str(file)), "Rename the file."
            )
        if not file.name.lower().endswith(PARQUET + CSV):
            raise InvalidInputError(
                f"paths must end in one of {', '.join(PARQUET + CSV)}",
                repr(file.name),
                "Convert the file to parquet.",
            )
    return list(found)


def is_parquet(file: Path) -> bool:
    """Return whether a file is named as parquet, in upper case or lower."""
    return file.name.lower().endswith(PARQUET)


def require_rows(n_rows: int, files: Sequence[Path]) -> None:
    """Refuse files that hold no rows between them, naming the first."""
    if n_rows == 0:
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        raise UnscorableInputError(
            "files must hold at least one row",
            f"none in {files[0]}{others}",
            "Check what wrote them.",
        )


def file_batches(
    files: Sequence[Path],
    roles: Mapping[str, Role],
    dialect: Dialect | None = None,
    *,
    use_threads: bool = False,
) -> Iterator[FileBatch]:
    """Yield the named columns of files, batch by batch.

    Refused are files that can't be read, and a column that is missing, there twice or of another
    type. What was recognised of a CSV file is said once, after the last batch.
    """
    recognised = []
    for file in files:
        csv, batches = _opened(file, roles, dialect or Dialect(), use_threads)
        if csv is not None and csv.was_recognised:
            recognised.append(csv)
        first_row = 0
        for table in batches:
            yield FileBatch(table, file, first_row, csv)
            first_row += table.num_rows
    say_recognised(recognised)


def _opened(
    file: Path, roles: Mapping[str, Role], dialect: Dialect, use_threads: bool
) -> tuple[CsvFile | None, Iterator[pa.RecordBatch]]:
    require_pyarrow()
    if is_parquet(file):
        return None, _parquet_batches(file, list(roles), use_threads)
    csv = open_csv_file(file, roles, dialect)
    return csv, csv.batches(roles, use_threads=use_threads)


def read_whole(
    file: Path, roles: Mapping[str, Role], dialect: Dialect
) -> tuple[pa.Table, CsvFile | None]:
    """Return the named columns of a file as a whole, and the header of a CSV file."""
    require_pyarrow()
    if not is_parquet(file):
        csv = open_csv_file(file, roles, dialect)
        plain = file.name.lower().endswith(".csv")  # whose size in memory is that on the disk
        return csv.table(roles) if plain else _unpacked(csv, roles), csv
    from pyarrow import ArrowException

    with _open_parquet(file) as reader:
        require_columns(roles, reader.schema_arrow.names, file)
        _require_room(file, reader.metadata.num_rows * len(roles))
        try:
            return reader.read(columns=list(roles)), None
        except (ArrowException, OSError) as error:
            raise unreadable(file, str(error)) from error


def size_when_read(file: Path, n_columns: int) -> int:
    """Return about how many bytes columns of a file take: a small parquet file can hold many."""
    if not is_parquet(file):
        return file.stat().st_size
    require_pyarrow()
    with _open_parquet(file) as reader:
        return max(file.stat().st_size, int(reader.metadata.num_rows) * n_columns * _CELL_BYTES)


def require_room(file: Path) -> None:
    """Refuse a parquet file that is far larger in memory than on the disk."""
    with _open_parquet(file) as reader:
        _require_room(file, reader.metadata.num_rows * reader.metadata.num_columns)


def _require_room(file: Path, n_cells: int) -> None:
    allowed = _allowed_bytes(file)
    if n_cells * _CELL_BYTES > allowed:
        raise _too_large(file, f"whose {n_cells:,} cells take {n_cells * _CELL_BYTES:,}", allowed)


def _unpacked(csv: CsvFile, roles: Mapping[str, Role]) -> pa.Table:
    """Return a compressed file as a whole, unpacked no further than is allowed."""
    import pyarrow as pa

    allowed, size, batches = _allowed_bytes(csv.path), 0, []
    for batch in csv.batches(roles, use_threads=True):
        batches.append(batch)
        size += batch.nbytes
        if size > allowed:
            raise _too_large(csv.path, f"which unpacks to at least {size:,}", allowed)
    return pa.Table.from_batches(batches) if batches else csv.table(roles)


def _allowed_bytes(file: Path) -> int:
    limit = raisable_limit(LIMIT_VARIABLE, _DEFAULT_LIMIT, "bytes")
    return max(limit, _GROWTH * file.stat().st_size)


def _too_large(file: Path, found: str, allowed: int) -> InvalidInputError:
    return InvalidInputError(
        "files must fit in memory",
        f"{file.name}, {found} bytes, more than {allowed:,}",
        f"Set {LIMIT_VARIABLE} to a larger number of bytes if the machine has several times that, "
        "or split the file.",
    )


def say_recognised(files: Sequence[CsvFile]) -> None:
    """Warn of separators that were recognised, once for all files."""
    if files:
        first, others = files[0], f" and {len(files) - 1} more" if len(files) > 1 else ""
        warn_user(
            f"{first.path.name}{others} was read with {first.sep!r} between cells and "
            f"{first.decimal!r} as the decimal point, as recognised from its first rows. "
            "Say so yourself (sep, --sep; decimal, --decimal) to be sure."
        )


def column_names(file: Path, dialect: Dialect | None = None) -> list[str]:
    """Return the names of all columns of a file, each of which must be there once."""
    require_pyarrow()
    if not is_parquet(file):
        return list(open_csv_file(file, None, dialect or Dialect()).names)
    with _open_parquet(file) as reader:
        names: list[str] = reader.schema_arrow.names
    require_columns(names, names, file)
    return names


def require_pyarrow() -> None:
    """Refuse to go on without pyarrow, with the command that installs it."""
    with needed_by("Reading files"):
        import_module("pyarrow.parquet")


def _parquet_batches(file: Path, columns: list[str], use_threads: bool) -> Iterator[pa.RecordBatch]:
    from pyarrow import ArrowException

    with _open_parquet(file) as reader:
        require_columns(columns, reader.schema_arrow.names, file)
        batches = (
            batch
            for group in range(reader.num_row_groups)  # over all groups at once, pages pile up
            for batch in reader.iter_batches(
                _BATCH_ROWS, row_groups=[group], columns=columns, use_threads=use_threads
            )
        )
        try:
            yield from _read_ahead(batches) if use_threads else batches
        except (ArrowException, OSError) as error:
            raise unreadable(file, str(error)) from error


def _read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, each decoded by a thread of its own while the one before is worked on."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch


def _open_parquet(file: Path) -> Any:
    import pyarrow.parquet
    from pyarrow import ArrowException

    try:
        return pyarrow.parquet.ParquetFile(file)
    except (ArrowException, OSError) as error:
        raise unreadable(file, str(error)) from error
