"""Tables and vectors that enter an estimator: checked, a column at a time."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.read.columns import column, floats, refuse_rows, require_shape
from trueup.read.columns import is_missing as is_missing_value

FloatArray = NDArray[np.float64]

Kind = Literal["number", "category", "date"]

LARGEST = 1e60
"""Fourth powers of numbers up to it, and sums of them, are far from the end of float64."""

FAR = 1e6
"""Standard deviations of the reference that any number of a batch counts as at most."""


def finite_vector(name: str, values: Any, n: int | None = None) -> FloatArray:
    """Return the values as float64 of shape (n,), none of them NaN, infinite or beyond 1e60."""
    vector = floats(column(values, name), name)
    if n is not None:
        require_shape(name, vector, n)
    rule = f"{name} must be finite, and between {-LARGEST:g} and {LARGEST:g}"
    refuse_rows(np.abs(vector) > LARGEST, vector, rule, "Remove or repair the row.")
    return vector


def is_binary(y_true: FloatArray) -> bool:
    """Return whether all labels are 0 or 1: the squared error is then the Brier score."""
    return bool(np.isin(y_true, (0.0, 1.0)).all())


def spread_of(y_true: FloatArray) -> float:
    """Return the standard deviation of the labels, or 1 where they are constant."""
    spread = float(y_true.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(y_true).max(initial=0.0))) else 1.0


def numeric_columns(X: Any) -> dict[str, FloatArray]:
    """Return the present values of each column of numbers."""
    found = {}
    for name, given in named_columns(X).items():
        values = column_values(given)
        if kind_of(values) == "number":
            missing = is_missing(values)
            found[name] = numbers_of(name, values, missing)[~missing]
    return found


def as_table(X: Any) -> Any:
    """Return a data frame as it is, and anything else as a 2-D array; neither may be empty."""
    if hasattr(X, "columns"):
        return X
    array = np.asarray(X)
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(
            "X must be two-dimensional and not empty",
            f"shape {array.shape}",
            "Give rows by features.",
        )
    return array


def named_columns(X: Any) -> dict[str, Any]:
    """Return views of the columns; :func:`column_values` converts one at a time."""
    table = as_table(X)
    if hasattr(table, "columns"):
        return {str(name): table[name] for name in table.columns}
    return {f"x{index}": table[:, index] for index in range(table.shape[1])}


def column_values(values: Any) -> NDArray[Any]:
    """Return a column as an array; numbers of pandas that may be missing are floats with NaN."""
    if hasattr(values, "to_numpy") and getattr(values.dtype, "kind", "") in ("i", "u", "f", "b"):
        # pandas' nullable numbers become objects unless the missing value is named.
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values)


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are NaN, None or what else stands for nothing."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    unequal = values != values
    if unequal.dtype == bool:
        return np.asarray(unequal | (values == None))  # noqa: E711 - elementwise
    return np.fromiter((is_missing_value(value) for value in values), bool, count=len(values))


def kind_of(values: NDArray[Any]) -> Kind:
    """Return what a column holds, by its type or by its values."""
    if values.dtype.kind in "iufb":
        return "number"
    if values.dtype.kind == "M":
        return "date"
    present = values[~is_missing(values)]
    numbers = (int, float, np.number, np.bool_)
    return "number" if len(present) and all(isinstance(v, numbers) for v in present) else "category"


def numbers_of(
    name: str, values: NDArray[Any], missing: NDArray[np.bool_], first_row: int = 0
) -> FloatArray:
    """Return the values as float64 with NaN where they are missing; none may be infinite."""
    try:
        numbers = np.where(missing, np.nan, values).astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            f"X must hold numbers in column {name!r} as the reference does",
            str(values.dtype),
            "Pass the column as it was in fit.",
        ) from None
    if np.isinf(numbers).any():
        index = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InvalidInputError(
            f"X must be finite or missing in column {name!r}",
            f"{numbers[index]} at index {first_row + index}",
            "Replace infinite values.",
        )
    return numbers
