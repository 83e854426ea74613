"""The level of each row of a field as a code, and the name by which levels of parts are merged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.inputs import column


def encode(field: Any, name: str) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the code of each row and the value of each code; a missing value has a code too.

    Categories of pandas and small non-negative integers are codes already, which saves a sort.
    """
    categories = getattr(getattr(field, "cat", field), "categories", None)
    if categories is not None:
        codes = np.asarray(getattr(field, "cat", field).codes).astype(np.intp)
        values = np.array([*categories, None], dtype=object)
        return np.where(codes < 0, len(values) - 1, codes), values
    values = column(field, name)
    if _are_codes(values):
        return values.astype(np.intp, copy=False), np.arange(int(values.max()) + 1)
    if values.dtype.kind == "O":
        marked = ["" if _missing(v) else f"={v}" for v in values.tolist()]
        names, codes = np.unique(np.array(marked), return_inverse=True)
        return codes, np.array([name[1:] if name else None for name in names.tolist()], object)
    values, codes = np.unique(values, return_inverse=True)
    return codes, values


def level_name(value: object) -> str:
    """Return the name of a level, empty for a missing value."""
    return "" if _missing(value) else f"={value}"


def _are_codes(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iu" or len(values) == 0:
        return False
    return bool(values.min() >= 0 and values.max() <= max(1_000, len(values)))


def _missing(value: object) -> bool:
    return value is None or value != value  # only a missing value differs from itself
