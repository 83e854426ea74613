"""Operational rows that are encoded in parts: a large batch is never held encoded as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trueup.monitoring.features import FeatureEncoder
from trueup.monitoring.inputs import FloatArray, as_table, finite_vector
from trueup.monitoring.trust.support import sample_positions

PART_ROWS = 65_536

Judge = Callable[[FloatArray, FloatArray], FloatArray]


class Batch:
    """Features and predictions of m operational rows, with the columns of the reference.

    X must be a table, and have one finite prediction for each row.
    """

    def __init__(self, encoder: FeatureEncoder, X: Any, y_pred: Any) -> None:
        self._encoder = encoder
        self._table = as_table(X)
        self.y_pred = finite_vector("y_pred", y_pred, len(self._table))

    def __len__(self) -> int:
        return len(self.y_pred)

    def sample(self, size: int, random_state: int) -> FloatArray:
        """Return ``size`` encoded rows drawn without replacement, or all if there are fewer."""
        positions = sample_positions(len(self), size, random_state)
        return self._encoder.transform(_take(self._table, positions))

    def rows(self, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
        """Return what each judge says of each row, shape (m,); each part is encoded once.

        Judges map encoded rows (k, d) and predictions (k,) to values (k,).
        """
        found = {name: np.empty(len(self)) for name in judges}
        for first in range(0, len(self), PART_ROWS):
            part = slice(first, first + PART_ROWS)
            x = self._encoder.transform(_take(self._table, part), first_row=first)
            for name, judge in judges.items():
                found[name][part] = judge(x, self.y_pred[part])
        return found

    def far_columns(self) -> tuple[str, ...]:
        """Return the columns whose numbers are cut, because they are absurdly far away."""
        return self._encoder.far_columns(self._table)

    def novelties(self) -> tuple[str, ...]:
        """Return what the reference never showed, in words."""
        return self._encoder.novelties(self._table)


def _take(table: Any, rows: Any) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
