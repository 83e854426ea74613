"""CSV files: how their cells and decimals are separated, and their columns as Arrow tables."""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trueup.errors import InvalidInputError
from trueup.read.columns import shown
from trueup.read.frames import require_columns
from trueup.read.texts import NULLS

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["number", "label", "id", "level", "text", "any"]
"""What a column is read for: it decides the type of a CSV column before its first row."""

_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 16, 200
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*").fullmatch
_THOUSANDS = {
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+").fullmatch,
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+").fullmatch,
}
_NUMBER = re.compile(r"[-+]?[\d.,]+([eE][-+]?\d+)?").fullmatch
_REASON = 300
_BLOCK = 16 << 20
_BAD_VALUE = re.compile(r"CSV column #(\d+):.*invalid value '(.*)'", re.DOTALL)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file separates cells and decimals; None is to be recognised."""

    sep: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        for name in ("sep", "decimal"):
            value = getattr(self, name)
            if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
                raise InvalidInputError(
                    f"{name} must be one character of ASCII, no quote and no line end",
                    repr(value),
                    "Leave it out to recognise it.",
                )
        if self.sep is not None and self.sep == self.decimal:
            raise InvalidInputError(
                "decimal must differ from sep", f"{self.decimal!r} for both", "Correct one."
            )


@dataclass(frozen=True)
class CsvFile:
    """A CSV file whose header was read; its separators may have been recognised, not given."""

    path: Path
    names: tuple[str, ...]
    sep: str
    decimal: str
    was_recognised: bool

    def batches(
        self, roles: Mapping[str, Role], *, use_threads: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns block by block: numbers as floats, all else as text."""
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        try:
            with arrow_csv.open_csv(str(self.path), **self._options(roles, use_threads)) as reader:
                yield from reader
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(str(error)) from error

    def table(self, roles: Mapping[str, Role]) -> pa.Table:
        """Return the columns as a whole, of the same types."""
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        try:
            return arrow_csv.read_csv(str(self.path), **self._options(roles, use_threads=True))
        except (pa.ArrowException, OSError) as error:
            raise self._refusal(str(error)) from error

    def _options(self, roles: Mapping[str, Role], use_threads: bool) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        kinds: Mapping[Role, Any] = {
            "number": pa.float64(),
            "label": pa.dictionary(pa.int32(), pa.string()),
            "level": pa.dictionary(pa.int32(), pa.string()),
        }
        return {
            "read_options": arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=use_threads),
            "parse_options": arrow_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=list(roles),
                column_types={name: kinds.get(role, pa.string()) for name, role in roles.items()},
                decimal_point=self.decimal,
            ),
        }

    def _refusal(self, reason: str) -> Exception:
        found = _BAD_VALUE.search(reason)
        if found is None:
            return unreadable(self.path, reason)
        value = found[2]
        fix = "Correct the row."
        if _THOUSANDS[","](value) or _THOUSANDS["."](value):
            fix = "Write the numbers without separators of thousands."
        elif _DECIMAL_COMMA(value):
            fix = "Pass decimal ',' (--decimal) if its comma is the decimal point."
        return InvalidInputError(
            f"column {self.names[int(found[1])]!r} of {self.path} must be numbers",
            f"{shown(value)}",
            fix,
        )


def unreadable(file: Path, reason: str) -> InvalidInputError:
    """Return the error of a file that can't be read, with the first line of the reason."""
    line = reason.strip().partition("\n")[0].rstrip(".")[:_REASON]
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return InvalidInputError(
        f"{file} must be a readable file", str(line), "Check that it is complete."
    )


def open_csv_file(path: Path, roles: Mapping[str, Role] | None, dialect: Dialect) -> CsvFile:
    """Read the header of a CSV file, and recognise what the dialect leaves open.

    Refused are files that are empty or no UTF-8 text, a column asked for that is missing or there
    twice, and numbers whose separator may be that of decimals or of thousands.
    """
    sample = _sample(path)
    by_sep = {sep: next(_rows(sample, sep), []) for sep in (dialect.sep or _SEPARATORS)}
    sep = max(by_sep, key=lambda s: (sum(n in by_sep[s] for n in roles or ()), len(by_sep[s])))
    names = by_sep[sep]
    require_columns(names if roles is None else roles, names, path)
    columns = _number_columns(names, roles)
    if dialect.decimal is None and roles is not None:
        _refuse_thousands(path, sample, sep, columns)
    decimal = dialect.decimal or _decimal_of(sample, sep, columns)
    guessed = (dialect.sep is None and sep != ",", dialect.decimal is None and decimal != ".")
    return CsvFile(path, tuple(names), sep, decimal, any(guessed))


def line_of(path: Path, row: int, sep: str) -> int | None:
    """Return the line of a file on which a row ends, both as people find them; None if unknown."""
    import pyarrow as pa

    with suppress(csv.Error, OSError, UnicodeDecodeError, pa.ArrowException):
        stream = pa.input_stream(str(path), compression="detect")
        with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=sep)
            filled = (reader.line_num for cells in reader if cells)
            return next(islice(filled, row + 1, None), None)
    return None


def _sample(path: Path) -> str:
    import pyarrow as pa

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            data: bytes = stream.read(_SAMPLE_BYTES)
        is_whole = len(data) < _SAMPLE_BYTES
        text = data.decode("utf-8-sig", errors="strict" if is_whole else "ignore")
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} at byte {error.start}"
        raise _no_utf8(path, got, data) from None
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, str(error)) from error
    if not text.strip():
        raise unreadable(path, "Empty CSV file")
    if "\0" in text.partition("\n")[0]:
        raise _no_utf8(path, "NUL bytes in the names of its columns", data)
    rows, _, _ = text.rpartition("\n")  # a number of which half was read is another number
    return text if is_whole or not rows else rows


def _no_utf8(path: Path, got: str, data: bytes) -> InvalidInputError:
    is_wide = data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) or b"\0" in data[:_REASON]
    guess = "It looks like UTF-16, as some programs export: s" if is_wide else "S"
    return InvalidInputError(f"{path} must be text in UTF-8", got, f"{guess}ave it as UTF-8.")


def _rows(sample: str, sep: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(io.StringIO(sample, newline=""), delimiter=sep)
    except csv.Error:  # a cell beyond the limit of the module; the header stands
        return


def _number_columns(names: list[str], roles: Mapping[str, Role] | None) -> list[int]:
    numeric = ("number", "any", "label")
    return [i for i, n in enumerate(names) if roles is None or roles.get(n, "id") in numeric]


def _decimal_of(sample: str, sep: str, columns: Sequence[int]) -> str:
    """Return the comma where a cell that may be a number is one with a comma."""
    rows = _rows(sample, sep)
    next(rows, None)
    cells = (row[i] for row in islice(rows, _SAMPLE_ROWS) for i in columns if i < len(row))
    return "," if any(_DECIMAL_COMMA(cell) for cell in cells) else "."


def _refuse_thousands(path: Path, sample: str, sep: str, columns: Sequence[int]) -> None:
    """Refuse a column of numbers such as 543 and 2,306, which may be 2306 or 2.306.

    Any other number with the mark, as 0,5 or 1234,5, says that decimals follow it. A point is in
    doubt only where no comma separates cells, as in files of countries that write 2.306,5.
    """
    names, *rows = (row for row in _rows(sample, sep) if row)
    for i, mark in product(columns, ",." if sep != "," else ","):
        cells = {n: row[i].strip() for n, row in enumerate(rows) if i < len(row)}
        numbers = {n: cell for n, cell in cells.items() if cell not in NULLS}
        marked = {n: cell for n, cell in numbers.items() if mark in cell}
        are_numbers = marked and all(map(_NUMBER, numbers.values()))
        if are_numbers and all(map(_THOUSANDS[mark], marked.values())):
            row, cell = next(iter(marked.items()))
            raise InvalidInputError(
                f"column {names[i]!r} of {path} must be numbers that can be read in one way",
                f"{cell!r} in row {row}, counted from 0 (line {line_of(path, row, sep)} of the "
                f"file), which is {cell.replace(mark, '')} or has decimals",
                f"Write thousands without {mark!r}. If decimals follow it, pass decimal {mark!r} "
                "(--decimal) to evaluate; elsewhere write such a file as parquet.",
            )
