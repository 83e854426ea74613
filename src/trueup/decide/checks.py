"""Checks of the arguments that the functions of this package share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.arguments import LARGEST_FLOAT, check_fraction, is_real
from trueup.errors import InvalidInputError

FloatArray = NDArray[np.float64]


def check_values(name: str, values: ArrayLike, minimum: int = 1) -> FloatArray:
    """Return finite metric values as a float64 array of shape (n,).

    Raises
    ------
    InvalidInputError
        If the array is not one-dimensional, is too short, or holds NaN or infinity.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInputError(
            f"{name} must be an array of numbers", repr(values), "Pass one metric value per run."
        ) from None
    if array.ndim != 1 or len(array) < minimum:
        raise InvalidInputError(
            f"{name} must be one-dimensional with at least {minimum} values",
            f"shape {array.shape}",
            "Pass one metric value per run.",
        )
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidInputError(
            f"{name} must be finite",
            f"{array[index]} at index {index}",
            "Rerun the failed run or leave it out.",
        )
    return array


def check_same_length(first: FloatArray, second: FloatArray, names: tuple[str, str]) -> None:
    """Raise InvalidInputError unless the two arrays hold one value per pair each."""
    if len(first) != len(second):
        raise InvalidInputError(
            f"{names[0]} and {names[1]} must have equal lengths",
            f"{len(first)} and {len(second)}",
            "Pass one value of each per seed, in the same order.",
        )


def check_level(name: str, level: float) -> None:
    """Raise InvalidInputError unless ``level`` is a probability strictly between 0 and 1."""
    check_fraction(name, level, "The default fits most.")


def check_min_effect(min_effect: float) -> None:
    """Raise InvalidInputError unless ``min_effect`` is finite and not negative."""
    if not (is_real(min_effect) and 0.0 <= min_effect <= LARGEST_FLOAT):
        raise InvalidInputError(
            "min_effect must be finite and at least 0",
            repr(min_effect),
            "Give the smallest difference that matters, in units of the metric.",
        )
