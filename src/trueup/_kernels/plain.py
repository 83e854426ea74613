"""Rows in the form that most input has, and what a kernel makes of them in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup._kernels.hashing import HashRule, UInt64Array

FloatArray = NDArray[np.float64]

MAX_FOLDS = 1 << 18
"""Up to here the kernel's remainder is exact in float64."""


@dataclass(frozen=True)
class PlainRows:
    """Unchecked rows of a binary classifier as contiguous arrays.

    Attributes
    ----------
    label, prediction : float array of shape (n,)
        Labels 0 and 1, and probabilities or logits.
    is_logit : bool
        Which of the two the predictions are.
    weight : float array of shape (n,) or None
        Sample weights.
    row_id : uint64 array of shape (n,) or None
        Ids; without them ``first_row`` and the integers that follow.
    first_row : int
        Position of the first row.
    rule : HashRule
        Group of each row.
    """

    label: FloatArray
    prediction: FloatArray
    is_logit: bool
    weight: FloatArray | None
    row_id: UInt64Array | None
    first_row: int
    rule: HashRule

    def leading(self, n: int) -> PlainRows:
        """Return the first n rows."""
        weight = None if self.weight is None else self.weight[:n]
        row_id = None if self.row_id is None else self.row_id[:n]
        label, prediction = self.label[:n], self.prediction[:n]
        return replace(self, label=label, prediction=prediction, weight=weight, row_id=row_id)


@dataclass(frozen=True)
class Absorbed:
    """The leading rows that a kernel has added to its tables.

    Attributes
    ----------
    n : int
        How many; the row after them needs another look.
    row_counts : int array of shape (n_groups, 2)
        Rows of each group and label.
    support : int array of shape (n_groups, 2)
        The same for rows of positive weight.
    low, high : int
        Words of the sum of the rows' hashes.
    """

    n: int
    row_counts: NDArray[np.int64]
    support: NDArray[np.int64]
    low: int
    high: int
