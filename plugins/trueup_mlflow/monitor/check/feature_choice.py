"""Which columns of a reference the model takes, and which of them the check sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import FloatArray
from trueup.read.times import read_times
from trueup.user_warning import warn_user

_COLLISIONS = 10.0  # as many equal pairs must be expected of numbers that do not just count
_MIN_ROWS = 20
_EPOCHS = [(10.0**9 * unit, 2.2 * 10.0**9 * unit) for unit in (1.0, 1e3, 1e6, 1e9)]


def chosen_features(
    reference: pd.DataFrame,
    inputs: Sequence[str],
    *,
    features: Sequence[str] | None,
    ignore: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the columns that the check sees: the model's inputs without what only counts rows.

    What the user named as ``features`` is taken as it is. A named column must be there, and one
    must be left.
    """
    for name in (*(features or ()), *ignore):
        if name not in reference:
            raise InvalidInputError(
                "features and ignore must be columns of the reference",
                repr(name),
                "Check the spelling.",
            )
    kept = [name for name in (features or inputs) if name not in ignore]
    if features is None:
        counting = {name: _counting(reference[name]) for name in kept}
        found = {name: what for name, what in counting.items() if what}
        if found and len(found) < len(kept):
            _say_left_out(found)
            kept = [name for name in kept if name not in found]
    if not kept:
        raise InvalidInputError("reference must have features", "none", "Pass all columns.")
    return tuple(kept)


def _say_left_out(found: dict[str, str]) -> None:
    words = ", ".join(f"{name!r} ({what})" for name, what in found.items())
    warn_user(
        f"the check leaves out {words}: each batch would lie outside of the reference. The model "
        "still gets what it takes; features= names what the check is to see."
    )


def _counting(column: pd.Series) -> str:
    """Return what a column counts, where it only counts rows or moments; else nothing."""
    values = column.dropna()
    if len(values) < _MIN_ROWS:
        return ""
    if pd.api.types.is_bool_dtype(values.dtype):
        return ""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return _of_numbers(values.to_numpy(dtype=np.float64))
    if isinstance(values.iloc[0], str) and values.nunique() > len(values) / 10:
        return "text that holds times" if _are_times(values) else ""
    return ""


def _of_numbers(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    if any(first <= low and high <= last for first, last in _EPOCHS):
        return "a time stamp"
    whole = bool((values == np.round(values)).all())
    if not whole or len(np.unique(values)) < len(values):
        return ""
    expected = len(values) ** 2 / 2.0 / (high - low)  # equal pairs, if drawn at random
    return "a running number" if expected > _COLLISIONS else ""


def _are_times(values: pd.Series) -> bool:
    try:
        return read_times(values.head(100).to_numpy(dtype=object)).dtype.kind == "M"
    except InvalidInputError:
        return False
