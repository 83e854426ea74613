"""Missing values: counted and placed, whichever library marks them and however it does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError


def refuse_missing(values: Any, array: NDArray[Any], name: str) -> None:
    """Refuse a column that misses values, saying how many and where the first is.

    NaN in a column of plain floats is a number that is not finite: another check's message.

    Parameters
    ----------
    values : Any
        The column as it came, which may tell a missing value from NaN.
    array : array of shape (n,) or (n, k)
        The same column as an array.
    name : str
        What messages call it.

    Raises
    ------
    InvalidInputError
        If a value is missing.
    """
    missing = missing_rows(values, array)
    if missing is not None and missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InvalidInputError(missing_message(name, int(missing.sum()), first))


def missing_message(name: str, count: int, first_row: int, source: object = None) -> str:
    """Return the one sentence about missing values of an argument, or of a column of a source.

    Examples
    --------
    >>> missing_message("y_true", 3, 17).partition(". ")[0]
    'y_true must not hold missing values; got 3 missing values in y_true, first at row 17'
    """
    subject = name if source is None else f"column {name!r} of {source}"
    values = "value" if count == 1 else "values"
    return (
        f"{subject} must not hold missing values; got {count:,} missing {values} in {name}, "
        f"first at row {first_row}. Drop or fill the rows."
    )


def missing_rows(values: Any, array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return which rows miss a value; None where the column can't mark one."""
    if array.dtype.kind == "O":
        listed = array.ravel().tolist()
        found = [v is None or (type(v) is not str and is_missing(v)) for v in listed]
        mask = np.array(found, dtype=bool).reshape(array.shape)
    elif array.dtype.kind == "f" and marks_missing(values):
        mask = np.isnan(array)
    else:
        return None
    return np.asarray(mask.any(axis=tuple(range(1, mask.ndim)))) if mask.ndim else mask[None]


def marks_missing(values: Any) -> bool:
    """Say whether a column of polars, pyarrow or pandas' nullable types holds a null."""
    count = getattr(values, "null_count", None)  # a method in polars, a number in pyarrow
    if count is not None:
        count = count() if callable(count) else count
        return bool(np.asarray(count).any())
    types: Any = getattr(values, "dtypes", None)  # of a frame, a column each
    listed = types if hasattr(types, "to_numpy") else [getattr(values, "dtype", None)]
    return any(hasattr(dtype, "na_value") for dtype in listed)


def is_missing(value: object) -> bool:
    """Say whether a value is None, NaN, NaT or pandas' NA, which doesn't compare."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    return type(value).__name__ == "NAType" or bool(value != value)
