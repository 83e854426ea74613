"""Sums over the levels of a field, mergeable by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import engine
from trueup.errors import InvalidInputError, StateMismatchError
from trueup.fields import FieldCalibration, calibration_of_sums
from trueup.inputs import read_binary_labels, read_probabilities, read_weight
from trueup.losses import FloatArray
from trueup.summaries.levels import encode, level_name


class FieldSummary:
    """Summary of one field; its size grows with the number of levels and not with the rows.

    Parameters
    ----------
    name : str
        Name of the field.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.sums = np.zeros((0, 4))
        self._values: NDArray[Any] = np.empty(0, dtype=object)
        self._levels: dict[str, int] | None = None

    @property
    def levels(self) -> dict[str, int]:
        """Row of ``sums`` of each level; a level is named by "=" and its value, or "" if missing.

        Names are made when they are needed first: one batch alone needs none.
        """
        if self._levels is None:
            self._levels = {level_name(value): i for i, value in enumerate(self._values.tolist())}
        return self._levels

    def update(self, y_true: Any, y_proba: Any, field: Any, *, sample_weight: Any = None) -> None:
        """Add a batch: labels 0/1, probabilities and levels, each of shape (n,)."""
        label = read_binary_labels(y_true)
        if len(label) == 0:
            return
        proba, (code, values) = read_probabilities(y_proba), encode(field, self.name)
        if not len(label) == len(proba) == len(code):
            raise InvalidInputError(
                f"{self.name} must have as many rows as y_true ({len(label)}); got {len(code)}. "
                "Pass all rows."
            )
        weight, batch = read_weight(sample_weight, len(label)), coded_summary(self.name, values)
        engine(len(label)).add_cells(code, label, proba, weight, batch.sums)
        self.merge(batch)

    def merge(self, other: FieldSummary) -> None:
        """Add the rows of another summary of the same field.

        Raises
        ------
        StateMismatchError
            If the other summary is of another field.
        """
        if self.name != other.name:
            raise StateMismatchError(
                f"summaries must be of one field; got {self.name!r} and {other.name!r}. "
                "Merge each field with its own."
            )
        if len(self.sums) == 0:
            self.sums, self._values = other.sums.copy(), other._values
            self._levels = None if other._levels is None else dict(other._levels)
            return
        position = [self.levels.setdefault(level, len(self.levels)) for level in other.levels]
        grown = np.zeros((len(self.levels), 4))
        grown[: len(self.sums)] = self.sums
        grown[position] += other.sums
        self.sums = grown

    def compute(self) -> FieldCalibration:
        """Return the errors over the levels; their noise floor needs the rows."""
        return calibration_of_sums(self.sums)


def coded_summary(name: str, values: NDArray[Any]) -> FieldSummary:
    """Return a summary without rows whose levels are the values of codes."""
    summary = FieldSummary(name)
    summary._values, summary.sums = values, np.zeros((len(values), 4))
    return summary


def restored_summary(name: str, levels: list[str], sums: FloatArray) -> FieldSummary:
    """Return the summary of stored levels and sums."""
    summary = FieldSummary(name)
    summary._levels, summary.sums = {level: i for i, level in enumerate(levels)}, sums
    return summary
