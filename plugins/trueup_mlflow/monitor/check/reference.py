"""What the user of ``init`` said about the reference, and which of its columns the check sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.metrics import DEFAULT_METRIC
from trueup.read.times import read_times
from trueup.user_warning import warn_user

ReferenceKind = Literal["held-out", "train"]


@dataclass(frozen=True)
class Wishes:
    """What the user of ``init`` said about the reference."""

    # columns of labels, ids and times
    target: str
    row_id: str | None = None
    # {"held-out", "train"}: whether the model has seen the rows
    reference_is: ReferenceKind = "held-out"
    time: str | None = None
    time_format: str | None = None  # format of times that are text
    # columns that the check is to see, or not
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    prediction: str | None = None  # column of the model's output
    metric: str = DEFAULT_METRIC  # what is to be estimated
    predicted: str | None = None  # column of the model's predictions

    def __post_init__(self) -> None:
        if self.target in (self.row_id, self.time, *(self.features or ())):
            raise InvalidInputError(
                "target must be another column than row_id, time and features",
                repr(self.target),
                "No batch has labels: name what it has.",
            )
        if self.time_format is not None and self.time is None:
            raise InvalidInputError(
                "time must be a column where time_format is given",
                "None",
                "Name it, or leave both out.",
            )
        if self.predicted is not None and self.predicted in (self.target, self.row_id, self.time):
            raise InvalidInputError(
                "predicted must be another column than target, row_id and time",
                repr(self.predicted),
                "Name the column that holds the model's predictions.",
            )
        if self.predicted is not None and self.prediction is not None:
            raise InvalidInputError(
                "prediction must be left out where predicted is given",
                repr(self.prediction),
                "It chooses one output of a model, and none is loaded.",
            )
        if self.reference_is == "train" and self.predicted is not None:
            raise InvalidInputError(
                "reference_is must be 'held-out' where predicted is given",
                "'train'",
                "The model is refitted on training rows, and so must be loaded.",
            )
        if self.reference_is == "train" and (self.features or self.ignore):
            raise InvalidInputError(
                "reference_is must be 'held-out' where features or ignore are given",
                "'train'",
                "Of training rows the check sees all that the model takes, as it is refitted "
                "on them.",
            )


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
