"""Validation rows in one form, after every check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.losses import FloatArray, Loss
from trueup.splits import GroupArray


@dataclass(frozen=True)
class Rows:
    """Checked validation rows.

    Attributes
    ----------
    loss : Loss
        The loss that fits the predictions.
    y_true : float array of shape (n,)
        Labels: 0/1, class indices, targets or counts.
    margin : float array of shape (n,) or (n, k)
        Predictions on the scale on which the bias acts.
    weight : float array of shape (n,) or None
        Sample weights.
    row_id : uint64 array of shape (n,)
        Identity of each row.
    times : array of shape (n,) or None
        Time of each row.
    """

    loss: Loss
    y_true: FloatArray
    margin: FloatArray
    weight: FloatArray | None
    row_id: UInt64Array
    times: NDArray[Any] | None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None where the target is a number."""
        n_columns = self.margin.shape[1] if self.margin.ndim == 2 else 1
        return {"binary": 2, "multiclass": n_columns}.get(self.loss.task)

    def only(self, kept: NDArray[np.bool_]) -> Rows:
        """Return the rows of a mask."""
        return Rows(
            self.loss,
            self.y_true[kept],
            self.margin[kept],
            None if self.weight is None else self.weight[kept],
            self.row_id[kept],
            None if self.times is None else self.times[kept],
        )

    def support(self, groups: GroupArray, n_groups: int) -> NDArray[np.intp]:
        """Return the rows of positive weight in each group and class, (n_groups, n_classes or 1).

        A row of weight zero is a row that is not there.
        """
        n_classes = self.n_classes or 1
        cell = groups if n_classes == 1 else groups * n_classes + self.y_true.astype(np.intp)
        if self.weight is not None:
            cell = cell[self.weight > 0.0]
        return np.bincount(cell, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
