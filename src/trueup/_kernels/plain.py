"""Rows in the form that most input has, and what a kernel makes of them in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup._kernels.words import UInt64Array, salt_key, salted_hash

FloatArray = NDArray[np.float64]

MAX_FOLDS = 1 << 18
"""Up to here the kernel's remainder is exact in float64."""


@dataclass(frozen=True)
class HashRule:
    """Group of a row by the salted hash of its id: by the remainder, or by a limit.

    Attributes
    ----------
    salt : int
        Another salt gives other groups.
    folds : int
        The group is the hash modulo ``folds``; 0 for a rule with a limit.
    limit : int
        Hashes from here on are group 1, those below group 0.
    """

    salt: int = 0
    folds: int = 0
    limit: int = 0

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.folds or 2

    @property
    def key(self) -> np.uint64:
        """The salt as the kernel takes it."""
        return salt_key(self.salt)

    def groups(self, row_id: UInt64Array) -> NDArray[np.intp]:
        """Return the group of each row."""
        if self.folds == 1:
            return np.zeros(len(row_id), dtype=np.intp)
        hashed = salted_hash(row_id, self.salt)
        if self.folds == 0:
            return (hashed >= np.uint64(self.limit)).astype(np.intp)
        folds = np.uint64(self.folds)
        return (hashed - hashed // folds * folds).astype(np.intp)  # numpy's % is far slower


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
        Sums of the low and of the high words of the rows' hashes.
    """

    n: int
    row_counts: NDArray[np.int64]
    support: NDArray[np.int64]
    low: int
    high: int
