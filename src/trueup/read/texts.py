"""Columns of text, as CSV files have them, in the type that all of their rows have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

NULLS = frozenset(
    {
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "N/A",
        "n/a",
        "NA",
        "NULL",
        "null",
        "NaN",
        "nan",
        "-NaN",
        "-nan",
    }
    | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
"""What stands for a missing number; of text, only an empty cell does."""

TRUTH = {"true": True, "false": False}

_HEAD = 1_000
_DIGITS = 18
"""Digits of which every integer fits 64 bits."""


def typed(texts: Sequence[pa.ChunkedArray], decimals: Sequence[str]) -> list[pa.ChunkedArray]:
    """Return a column of several files as integers, numbers, truth values or text, null if missing.

    Leading zeros, and integers of more digits than 64 bits hold, are text: a number would lose
    them. Each file has its own decimal point.
    """
    import pyarrow as pa

    if texts and all(pa.types.is_dictionary(part.type) for part in texts):
        return _typed_dictionaries(texts, decimals)
    cells = [_cells(part, decimal) for part, decimal in zip(texts, decimals, strict=True)]
    kind = _kind_of(pa.chunked_array([c for part in cells for c in part.chunks], pa.string()))
    chosen = texts if kind == pa.string() else cells
    return [_as_kind(part, kind) for part in chosen]


def _typed_dictionaries(
    texts: Sequence[pa.ChunkedArray], decimals: Sequence[str]
) -> list[pa.ChunkedArray]:
    """Type the distinct cells alone."""
    import pyarrow as pa

    unified = [part.unify_dictionaries() for part in texts]
    distinct = [
        pa.chunked_array([part.chunk(0).dictionary] if part.num_chunks else [], pa.string())
        for part in unified
    ]
    return [
        pa.chunked_array(
            [values.combine_chunks().take(c.indices) for c in part.chunks], values.type
        )
        for part, values in zip(unified, typed(distinct, decimals), strict=True)
    ]


def _cells(texts: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Return the cells without blanks around them, null where a number would be missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(texts)
    cells = pc.if_else(pc.is_in(cells, pa.array(sorted(NULLS))), None, cells)
    return cells if decimal == "." else pc.replace_substring(cells, decimal, ".")


def _kind_of(cells: pa.ChunkedArray) -> pa.DataType:
    import pyarrow as pa
    import pyarrow.compute as pc

    head = cells.slice(0, _HEAD)  # a cast of all that fails costs more than one that doesn't
    for kind in (pa.int64(), pa.float64()):
        if _fits(head, kind) and _fits(cells, kind):
            return pa.string() if _would_lose_digits(cells, kind) else kind
    if _are_truths(head) and _are_truths(pc.unique(cells)):
        return pa.bool_()
    return pa.string()


def _as_kind(cells: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == pa.string():
        return pc.if_else(pc.equal(cells, ""), None, cells)
    return pc.equal(pc.utf8_lower(cells), "true") if kind == pa.bool_() else cells.cast(kind)


def _fits(cells: Any, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        cells.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _are_truths(cells: Any) -> bool:
    return {str(cell).lower() for cell in cells.to_pylist() if cell is not None} <= set(TRUTH)


def _would_lose_digits(cells: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Say whether a cell is 007, 0x1F, or an integer that only a float would hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for zero in ("0", "-0"):  # cheaper than a pattern over all cells
        begun = cells.filter(pc.starts_with(cells, zero))
        if pc.any(pc.match_substring_regex(begun, "^-?0[0-9xX]")).as_py():
            return True
    if kind == pa.int64():
        return False
    long = cells.filter(pc.greater(pc.utf8_length(cells), _DIGITS))
    return bool(pc.any(pc.match_substring_regex(long, "^[-+]?[0-9]+$")).as_py())
