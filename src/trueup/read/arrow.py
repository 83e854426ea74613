"""Columns of Arrow batches as ids, labels, numbers and levels, typed or cells of a CSV file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.errors import InvalidInputError
from trueup.read.columns import missing_values
from trueup.read.ids import ids_of_texts, is_decimal
from trueup.read.texts import NULLS, TRUTH

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Categories:
    """Levels as codes of categories; the code of a missing value is -1."""

    codes: NDArray[np.intp]
    categories: tuple[str, ...]


def array_of_column(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    """Return the values of a column; refuse missing ones."""
    column = batch.column(name)
    if column.null_count:
        first = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise missing_values(name, column.null_count, int(first), "a batch")
    return _as_numpy(column)


def _as_numpy(column: pa.Array) -> NDArray[Any]:
    """Return values none of which is missing; numbers without pandas, which ``to_numpy`` loads."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.from_dlpack(column)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def missing_rows_of(column: pa.Array | pa.ChunkedArray, *, is_cells: bool) -> NDArray[np.intp]:
    """Return the rows that miss a value; the empty cells of a CSV file do."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        starts = np.cumsum([0, *map(len, column.chunks)])
        parts = [missing_rows_of(chunk, is_cells=is_cells) for chunk in column.chunks]
        return np.concatenate([[], *(s + p for s, p in zip(starts, parts, strict=False))]).astype(
            np.intp
        )
    if is_cells and pa.types.is_dictionary(column.type):
        empty = [i for i, text in enumerate(column.dictionary.to_pylist()) if not text]
        return np.flatnonzero(np.isin(column.indices, empty)) if empty else np.zeros(0, np.intp)
    if is_cells and pa.types.is_string(column.type):
        import pyarrow.compute as pc  # loads for a tenth of a second

        return np.flatnonzero(pc.equal(column, ""))
    return np.flatnonzero(column.is_null()) if column.null_count else np.zeros(0, np.intp)


def ids_of_column(column: pa.Array, source: object = "row_id") -> tuple[UInt64Array, bool]:
    """Return the 64-bit id of each row, none null, and whether all of them are integers."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        values = column.to_numpy(zero_copy_only=False)
        wide = np.int64 if values.dtype.kind == "i" else np.uint64
        return values.astype(wide, copy=False).view(np.uint64), True
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InvalidInputError(
            f"{source} must be integers or strings", str(column.type), "Convert the ids to strings."
        )
    integers = _decimal_integers(column)
    if integers is not None:
        return integers, True
    texts = column.to_pylist()
    return ids_of_texts(texts), all(map(is_decimal, texts))


def _decimal_integers(texts: pa.Array) -> UInt64Array | None:
    """Return text as integers where each is how that integer is written down, else None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for kind in (pa.int64(), pa.uint64()):
        try:
            integers = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        if pc.all(pc.equal(integers.cast(texts.type), texts)).as_py() in (True, None):
            return np.asarray(integers.to_numpy(zero_copy_only=False)).view(np.uint64)
    return None


def labels_of_cells(
    column: pa.DictionaryArray, labels: Sequence[Any] | None, decimal: str
) -> NDArray[Any]:
    """Return the labels of a CSV column: text where ``labels`` names text, numbers where not."""
    texts = column.dictionary.to_pylist()
    codes = _as_numpy(column.indices)
    named = labels is not None and any(isinstance(label, str) for label in labels)
    numbers = [None if named else _number(text, decimal) for text in texts]
    if None in numbers:
        return np.asarray(np.array(texts, dtype=object)[codes])
    return np.asarray(np.array(numbers, dtype=np.float64)[codes])


def _number(text: str, decimal: str = ".") -> float | None:
    word = text.strip()
    truth = TRUTH.get(word.lower())
    if truth is not None:
        return float(truth)
    try:
        return float(word.replace(decimal, ".")) if "_" not in word else None
    except ValueError:
        return None


@contextmanager
def convertible(name: str, kind: pa.DataType | None = None) -> Iterator[None]:
    """Refuse values that Python has no form of: the year 12000, an unknown time zone, no UTF-8."""
    import pyarrow as pa

    try:
        yield
    except (KeyError, OverflowError, ValueError, pa.ArrowException) as error:
        said = str(error).strip().partition("\n")[0].rstrip(".")
        raise InvalidInputError(
            f"{name} must hold values that Python has too",
            said if kind is None else f"{kind}: {said}",
            "Mend the column, or write it as text.",
        ) from None


def levels_of_column(batch: pa.RecordBatch, name: str, *, is_cells: bool = False) -> Any:
    """Return the levels as categories, which need no Python object for each row."""
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_floating(column.type):  # NaN is no category
        return column.to_numpy(zero_copy_only=False)
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowException:
        raise InvalidInputError(
            f"{name} must be text, whole numbers or dates",
            str(column.type),
            "Convert the column.",
        ) from None
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    with convertible(name, column.type):
        levels = encoded.dictionary.to_pylist()
    return _levels_of_cells(codes, levels, name) if is_cells else _categories(codes, levels)


def _levels_of_cells(codes: NDArray[Any], texts: list[str], name: str) -> Categories:
    """Return cells of a CSV column as levels, where 1.0 and 1 are the same if all are numbers."""
    present = [text for text in texts if text not in NULLS]
    are_numbers = all(_number(t) is not None and not _has_leading_zero(t) for t in present)
    if not are_numbers:
        return _categories(codes, [text or None for text in texts])
    wholes = {text: _whole(text) for text in present}
    fractional = next((text for text, whole in wholes.items() if whole is None), None)
    if fractional is not None:
        raise InvalidInputError(
            f"{name} must be whole numbers or categories in a summary",
            str(fractional),
            "Cut it into bins first.",
        )
    return _categories(codes, [wholes.get(text) for text in texts])


def _has_leading_zero(text: str) -> bool:
    return text.strip().lstrip("+-")[:1] == "0" and text.strip().lstrip("+-")[1:2].isdigit()


def _whole(text: str) -> str | None:
    """Return a number's text as that of an integer; None where it has a fraction."""
    if text.strip().lower() in TRUTH or is_decimal(text):
        return text.strip()
    number = _number(text)
    return str(int(number)) if number is not None and number.is_integer() else None


def _categories(codes: NDArray[Any], levels: list[Any]) -> Categories:
    """Return levels each once: several of them may have one name, and None is missing."""
    names = {str(level): None for level in levels if level is not None}
    position = {name: i for i, name in enumerate(names)}
    of_code = [-1 if level is None else position[str(level)] for level in levels]
    return Categories(np.array([*of_code, -1], dtype=np.intp)[codes], tuple(names))
