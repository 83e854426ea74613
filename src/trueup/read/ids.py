"""Ids of rows: integers and text, the same id for the same row wherever it was written down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.errors import InvalidInputError
from trueup.read.columns import column, refuse_missing, require_shape, shown
from trueup.user_warning import warn_user

ID_TYPES = ("integer", "text")


class IdTypes:
    """What the ids of each file are: integers in all rows, or text.

    Text that is how an integer is written down counts as an integer. ``expected`` ("integer" or
    "text") is what the user says that they are; the id of a row does not depend on it.
    """

    def __init__(self, expected: str | None = None) -> None:
        if expected is not None and expected not in ID_TYPES:
            raise InvalidInputError(
                f"id_type must be one of {', '.join(ID_TYPES)}",
                repr(expected),
                "Leave it out where all files agree.",
            )
        self._expected = expected
        self._are_integers: dict[Path, bool] = {}

    def add(self, file: Path, are_integers: bool, n: int) -> None:
        if n:
            self._are_integers[file] = self._are_integers.get(file, True) and are_integers

    def check(self) -> None:
        """Refuse files that hold only integers beside files that hold other text."""
        integers = [file for file, whether in self._are_integers.items() if whether]
        texts = [file for file, whether in self._are_integers.items() if not whether]
        if texts and self._expected == "integer":
            raise InvalidInputError(
                "row_id must be integers, as id_type says",
                f"text in {texts[0]}",
                "Pass text as id_type if it is meant.",
            )
        if integers and texts and self._expected is None:
            raise InvalidInputError(
                "files must agree about the type of row_id",
                f"integers in {integers[0]} and text in {texts[0]}",
                "Pass text as id_type if it is meant.",
            )


_FEW_IDS = 100


class FewIds:
    """The distinct ids of rows that a split deals out, as long as they are few.

    Rows of one id share a fold, so a column of few levels divides levels and not rows. Rows are
    looked at until there are more than a hundred ids.

    Examples
    --------
    >>> ids = FewIds()
    >>> ids.look(np.array([1, 2, 3, 1, 2, 3], dtype=np.uint64))
    >>> ids.n_ids, ids.n_rows
    (3, 6)
    """

    def __init__(self) -> None:
        self._known: UInt64Array | None = np.zeros(0, dtype=np.uint64)
        self.n_rows = 0

    @property
    def n_ids(self) -> int | None:
        """How many there are; None where they are many."""
        return None if self._known is None else len(self._known)

    def look(self, row_id: UInt64Array) -> None:
        self.n_rows += len(row_id)
        self._join(row_id[: 2 * _FEW_IDS])  # a head of many spares the rest
        self._join(row_id)

    def add(self, other: FewIds) -> None:
        self.n_rows += other.n_rows
        if other._known is None:
            self._known = None
        else:
            self._join(other._known)

    def _join(self, row_id: UInt64Array) -> None:
        if self._known is not None:
            joined = np.union1d(self._known, row_id)
            self._known = None if len(joined) > _FEW_IDS else joined

    def warn(self) -> None:
        n = self.n_ids
        if n and 2 * n <= self.n_rows:
            warn_user(
                f"row_id holds {n} id{'s' * (n > 1)} in {self.n_rows:,} rows, and rows of one id "
                "stay together, so the split divides ids and not rows. Name a column that tells "
                "rows apart, or none, unless these are groups that must stay together."
            )


_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,19}").fullmatch
_STARTS = frozenset("-0123456789")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_MASK = (1 << 64) - 1


def read_ids(row_id: Any, n: int, first_row: int = 0) -> UInt64Array:
    """Return the 64-bit id of each row: integers as they are, text hashed, else the position."""
    if row_id is None:
        return np.arange(first_row, first_row + n, dtype=np.uint64)
    ids = id_column(row_id)
    require_shape("row_id", ids, n)
    if ids.dtype == np.int64:
        return ids.view(np.uint64)
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64, copy=False)
    return ids_of_texts(ids.tolist()) if n else np.zeros(0, dtype=np.uint64)


def id_texts(values: Any, name: str = "row_id") -> NDArray[np.object_]:
    """Return each id as text, by which tables of different origin can be joined: 7 is "7".

    Examples
    --------
    >>> id_texts([7, 8]).tolist(), id_texts(["7", "07"]).tolist()
    (['7', '8'], ['7', '07'])
    """
    return np.array([str(value) for value in id_column(values, name).tolist()], dtype=object)


def ids_of_texts(texts: Sequence[str]) -> UInt64Array:
    """Return the id of each text."""
    try:
        return np.array([_id_of(text) for text in texts], dtype=np.uint64)
    except UnicodeEncodeError as error:
        index = texts.index(error.object)
        raise InvalidInputError(
            "row_id must be text that UTF-8 can write",
            f"{shown(error.object)} at index {index}",
            "Read the file with its own encoding.",
        ) from None


def is_decimal(text: str) -> bool:
    """Say whether a text is how an integer of 64 bits is written down.

    >>> [is_decimal(text) for text in ("7", "-7", "07", "+7", "7.0", "99999999999999999999")]
    [True, True, False, False, False, False]
    """
    return _DECIMAL(text) is not None and _LEAST <= int(text) <= _MOST


def _id_of(text: str) -> int:
    if text[:1] in _STARTS and is_decimal(text):  # the first letter tells most of them
        return int(text) & _MASK
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def id_column(values: Any, name: str = "row_id") -> NDArray[Any]:
    """Return integers of 64 bits as an array of integers, and text as one of objects."""
    ids = column(values, name, may_miss=True)
    listed = ids.tolist() if ids.dtype.kind in "OUT" else []
    if listed and _are_texts(listed):
        return ids.astype(object, copy=False)
    refuse_missing(values, ids, name)
    if ids.dtype.kind in "iu":
        return ids
    if ids.dtype.kind in "OUT":
        if listed and all(type(v) is int or isinstance(v, np.integer) for v in listed):
            return _integers(ids, name)
    elif ids.size == 0:
        return ids.astype(np.uint64)
    kinds = ", ".join(sorted({type(value).__name__ for value in listed}))
    raise InvalidInputError(
        f"{name} must be integers or strings",
        f"dtype {ids.dtype}{f', which holds {kinds}' if kinds else ''}",
        "Convert the ids to strings, or floats that are whole to integers.",
    )


def _integers(ids: NDArray[Any], name: str) -> NDArray[Any]:
    try:
        return ids.astype(np.int64 if ids.min() < 0 else np.uint64)
    except OverflowError:
        raise InvalidInputError(
            f"{name} must be integers of 64 bits, or strings",
            f"{shown(ids.max())}",
            "Convert the ids to strings.",
        ) from None


def _are_texts(values: Sequence[Any]) -> bool:
    return set(map(type, values)) <= {str} or all(isinstance(v, str) for v in values)
