"""Checks of the arrays that enter an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.read.columns import refuse_missing

FloatArray = NDArray[np.float64]

LARGEST = 1e60
"""Fourth powers of numbers up to it, and sums of them, are far from the end of float64."""

FAR = 1e6
"""Standard deviations of the reference that any number of a batch counts as at most."""


def finite_vector(name: str, values: Any, n: int | None = None) -> FloatArray:
    """Return the values as float64 of shape (n,).

    Raises
    ------
    InvalidInputError
        If they are not a vector of numbers of that length, or one is NaN, infinite or beyond 1e60.
    """
    if type(values) is not np.ndarray:
        refuse_missing(values, np.asarray(values), name)
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            f"{name} must be numbers",
            f"{type(values).__name__} of other values",
            "Convert it to floats.",
        ) from None
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1 or (n is not None and len(vector) != n):
        expected = f"({n},)" if n is not None else "(n,)"
        raise InvalidInputError(
            f"{name} must have shape {expected}",
            f"{np.shape(values)}",
            "Give one value for each row.",
        )
    wrong = ~(np.abs(vector) <= LARGEST)
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            f"{name} must be finite, and between {-LARGEST:g} and {LARGEST:g}",
            f"{vector[index]} at index {index}",
            "Remove or repair the row.",
        )
    return vector


def is_binary(y_true: FloatArray) -> bool:
    """Return whether all labels are 0 or 1: the squared error is then the Brier score."""
    return bool(np.isin(y_true, (0.0, 1.0)).all())


def spread_of(y_true: FloatArray) -> float:
    """Return the standard deviation of the labels, or 1 where they are constant."""
    spread = float(y_true.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(y_true).max(initial=0.0))) else 1.0
