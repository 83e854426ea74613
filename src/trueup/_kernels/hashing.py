"""Hashes of rows: which fold a row falls into, and which rows a number was computed from.

Both depend on the row alone, never on its neighbours, so they are the same on one machine and on
many. The 64-bit mixing is that of both engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup._kernels as kernels

UInt64Array = NDArray[np.uint64]
FloatArray = NDArray[np.float64]

FINGERPRINT_MODULUS = 1 << 128

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)

ID_FACTOR = np.uint64(0xD6E8FEB86659FD93)
LABEL_FACTOR = np.uint64(0xA0761D6478BD642F)
WEIGHT_FACTOR = np.uint64(0xE7037ED1A0B428DB)
"""Odd factors that keep id, label and weight apart before they are mixed."""

BITS_OF_ONE = np.uint64(0x3FF0000000000000)
"""Bits of 1.0: weights count from it, so that weights of 1 hash as no weights do."""

_MASK = (1 << 64) - 1
_BLOCK = 1 << 16  # rows whose temporaries stay in the cache of a core


def splitmix64(x: UInt64Array) -> UInt64Array:
    """Mix the bits of each integer (Steele, Lea and Flood 2014), modulo 2^64."""
    return mix_in_place(x.copy())


def mix_in_place(z: UInt64Array) -> UInt64Array:
    """Do what ``splitmix64`` does to the array itself."""
    z += GOLDEN
    shifted = z >> S30
    z ^= shifted
    z *= FIRST_FACTOR
    z ^= np.right_shift(z, S27, out=shifted)
    z *= SECOND_FACTOR
    z ^= np.right_shift(z, S31, out=shifted)
    return z


@lru_cache
def salt_key(salt: int) -> np.uint64:
    """Return what is XORed to an id before it is mixed: ``splitmix64(salt)``."""
    return np.uint64(splitmix64(np.array([salt & _MASK], dtype=np.uint64))[0])


def salted_hash(row_id: UInt64Array, salt: int) -> UInt64Array:
    """Return ``splitmix64(row_id XOR splitmix64(salt))``."""
    return mix_in_place(row_id ^ salt_key(salt))


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
    def numbers(self) -> tuple[int, int, int]:
        """What the loops take: key, folds and limit."""
        return int(salt_key(self.salt)), self.folds, self.limit

    def groups(self, row_id: UInt64Array) -> NDArray[np.intp]:
        """Return the group of each row."""
        out = np.empty(len(row_id), dtype=np.intp)
        kernels.engine.groups_of(np.ascontiguousarray(row_id), self.numbers, out)
        return out


def timed_ids(row_id: UInt64Array, times: NDArray[Any]) -> UInt64Array:
    """Return ids that tell rows of other times apart, for a split that goes by time."""
    if times.dtype.kind == "M":
        times = times.astype("datetime64[us]").astype(np.int64)
    moment = times.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    return splitmix64(row_id ^ splitmix64(moment.view(np.uint64)))


def rows_fingerprint(row_id: UInt64Array, label: FloatArray, weight: FloatArray | None) -> int:
    """Return the sum modulo 2^128 of the hash of each row's (id, label, weight).

    The sum does not depend on the order, and sums over parts add up to the sum over the whole.
    Weights of 1 count as no weights.
    """
    total = 0
    for start in range(0, len(row_id), _BLOCK):
        rows = slice(start, start + _BLOCK)
        own = None if weight is None else weight[rows]
        low, high = kernels.engine.hash_sums(row_id[rows], label[rows], own)
        total += low + (high << 64)
    return total % FINGERPRINT_MODULUS


def hash_sums(row_id: UInt64Array, label: FloatArray, weight: FloatArray | None) -> tuple[int, int]:
    """Return the sum of the rows' hashes modulo 2^128 as its low and its high word."""
    low = row_id * ID_FACTOR
    low += _bits(label) * LABEL_FACTOR
    if weight is not None:
        low += (_bits(weight) - BITS_OF_ONE) * WEIGHT_FACTOR
    low = mix_in_place(low)
    upper = int((low >> S32).sum()) << 32
    total = upper + ((int(low.sum()) - upper) & _MASK)  # exact as long as the rows are below 2^32
    total += int(mix_in_place(low).sum()) << 64
    return total & _MASK, (total >> 64) & _MASK


def _bits(values: FloatArray) -> UInt64Array:
    return (values + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0: equal numbers, equal bits
