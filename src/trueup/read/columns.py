"""Columns as arrays, whatever holds them, checked for what holds of any column."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.losses import FloatArray


def refuse_missing(values: Any, array: NDArray[Any], name: str) -> None:
    """Refuse a column that misses values, saying how many and where the first is.

    ``values`` is the column as it came, which may tell a missing value from NaN: NaN in a column of
    plain floats is a number that is not finite, another check's message.
    """
    missing = missing_rows(values, array)
    if missing is not None and missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise missing_values(name, int(missing.sum()), first)


def missing_values(
    name: str, count: int, first_row: int, source: object = None, line: int | None = None
) -> InvalidInputError:
    """Return the one refusal of missing values of an argument, or of a column of a source."""
    subject = name if source is None else f"column {name!r} of {source}"
    values = "value" if count == 1 else "values"
    where = f"row {first_row}, counted from 0" + (f" (line {line} of the file)" if line else "")
    return InvalidInputError(
        f"{subject} must not hold missing values",
        f"{count:,} missing {values} in {name}, first at {where}",
        "Drop or fill the rows.",
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
    if type(value).__name__ == "NAType":
        return True
    try:
        unequal = value != value
    except ArithmeticError:  # a signalling NaN of decimal
        return True
    return isinstance(unequal, bool | np.bool_) and bool(unequal)  # a cell may hold an array


_WORDS_FOR_MISSING = frozenset(
    {"", "?", "-", ".", "#n/a", "na", "n/a", "<na>", "nan", "nat", "nil", "none", "null", "tbd"}
    | {"missing", "unknown", "unk", "undefined"}
)


def reads_as_missing(value: object) -> bool:
    """Say whether a value is missing, or a word that people write for it.

    >>> [reads_as_missing(value) for value in ("NA", " unknown", float("nan"), "no", 0)]
    [True, True, True, False, False]
    """
    if isinstance(value, str):
        return value.strip().casefold() in _WORDS_FOR_MISSING
    return is_missing(value)


_LONGEST = 80


def shown(value: Any) -> str:
    """Return the repr of a value, its middle left out where it is long.

    >>> shown("a"), len(shown("a" * 10_000_000))
    ("'a'", 104)
    """
    text = repr(value[: 2 * _LONGEST] if isinstance(value, str) else value)
    if len(text) <= _LONGEST:
        return text
    size = f" ({len(value):,} characters)" if isinstance(value, str) else ""
    return f"{text[: _LONGEST - 1]}…{size}"


_LONG = 1_000
"""Letters from which one text would cost as much in each row of numpy's own kind of text."""


def column(values: Any, name: str, *, may_miss: bool = False) -> NDArray[Any]:
    """Return a one-dimensional array from a column of numpy, pandas, polars, pyarrow or torch.

    (n, 1) is taken as (n,); refused are other shapes, and a missing value where none may be.
    """
    array = as_array(values, name, may_miss=may_miss)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one-dimensional",
            f"shape {array.shape}",
            "Pass one value for each row.",
        )
    return array


def as_array(values: Any, name: str, *, may_miss: bool = False) -> NDArray[Any]:
    """Return an array from whatever holds a column or a table, not copied if possible."""
    if type(values) is np.ndarray and values.dtype.kind != "O":  # nothing to look for
        return values
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a GPU or with a gradient
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    if np.ma.is_masked(values):
        raise InvalidInputError(
            f"{name} must not hold masked values", "some", "Drop or fill the rows."
        )
    try:
        array = _of_list(values) if isinstance(values, list | tuple) else np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must have rows of equal length", f"a ragged list ({error})", "Pass an array."
        ) from None
    if not may_miss and array.ndim:
        refuse_missing(values, array, name)
    return array


def _of_list(values: Sequence[Any]) -> NDArray[Any]:
    """Return a list as an array; as objects where numpy's own text would change or swell it."""
    if len(values) and isinstance(values[0], str):
        if any(not isinstance(v, str) or len(v) > _LONG or v[-1:] == "\0" for v in values):
            return np.array(values, dtype=object)
        return np.asarray(values)
    array = np.asarray(values)  # a number among text would become text
    return np.array(values, dtype=object) if array.dtype.kind == "U" else array


def require_shape(name: str, values: NDArray[Any], n: int) -> None:
    """Refuse a column that does not hold n values."""
    if values.shape != (n,):
        raise InvalidInputError(
            f"{name} must have shape ({n},)", str(values.shape), "Give one value for each row."
        )


def require_rows(n: int, name: str, n_given: int) -> None:
    """Refuse a column whose length is not that of ``y_true``."""
    if n_given != n:
        raise InvalidInputError(
            f"{name} must have as many rows as y_true ({n})", str(n_given), "Pass all rows."
        )


def floats(
    array: NDArray[Any], name: str, not_finite: type[InvalidInputError] = InvalidInputError
) -> FloatArray:
    """Return numbers as float64, refused where they are of another type or not finite."""
    array = plain_numbers(array)
    if array.dtype.kind not in "fiub":
        raise _no_numbers(array, name)
    values = array.astype(np.float64, copy=False)
    if array.dtype.kind not in "iub" and not _all_finite(values):
        rule = f"{name} must be finite"
        refuse_rows(~np.isfinite(values), values, rule, "Drop or fix the row.", not_finite)
    return values


def packed(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array as the kernels take it: contiguous and aligned, which nearly all are."""
    return values if values.flags.carray else np.require(values, requirements=("C", "A"))


def _no_numbers(array: NDArray[Any], name: str) -> InvalidInputError:
    """Return the refusal of text or objects, with the value that is to blame."""
    got, fix = f"dtype {array.dtype}", "Convert the column to floats."
    for index, value in enumerate(array.ravel().tolist()):
        if isinstance(value, str) and reads_as_missing(value):
            got = f"{got} with {shown(value)} at index {index}"
            fix = "It looks like a missing value: drop its row, or fill it."
            break
    return InvalidInputError(f"{name} must be numbers", got, fix)


def plain_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Turn a column of objects into floats if all are Decimal, Fraction, Python numbers, bools."""
    plain = array.dtype.kind == "O" and all(isinstance(v, Number | np.bool_) for v in array.flat)
    try:
        return array.astype(np.float64) if plain else array
    except (OverflowError, TypeError, ValueError):  # as of 10**400: the caller names the column
        return array


def _all_finite(values: FloatArray) -> bool:
    """Tell by the extremes, which cost less than a mask of all values; NaN is passed on by both."""
    return values.size == 0 or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def refuse_rows(
    bad: NDArray[np.bool_],
    values: NDArray[Any],
    rule: str,
    fix: str,
    error: type[InvalidInputError] = InvalidInputError,
) -> None:
    """Raise an error with the first bad value and its index, if there is one."""
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = index[0] if len(index) == 1 else index
        raise error(rule, f"{_as_text(values[index])} at index {where}", fix)


def _as_text(value: Any) -> str:
    return str(value) if len(str(value)) <= 80 else shown(value)


def read_weight(sample_weight: Any, n: int, *, may_be_zero: bool = False) -> FloatArray | None:
    """Return weights of shape (n,), checked to be finite, not negative and not all zero."""
    if sample_weight is None:
        return None
    values = floats(column(sample_weight, "sample_weight"), "sample_weight")
    weight = packed(values)  # products with strided weights round otherwise
    require_shape("sample_weight", weight, n)
    refuse_rows(
        weight < 0.0, weight, "sample_weight must not be negative", "Drop or fix the weights."
    )
    if not may_be_zero and not weight.any():
        raise InvalidInputError(
            "sample_weight must hold a positive weight", "zeros only", "Drop the argument."
        )
    return weight
