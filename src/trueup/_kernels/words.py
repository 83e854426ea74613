"""The 64-bit mixing that both engines share."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

UInt64Array = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB

ID_FACTOR = 0xD6E8FEB86659FD93
LABEL_FACTOR = 0xA0761D6478BD642F
WEIGHT_FACTOR = 0xE7037ED1A0B428DB
"""Odd factors that keep id, label and weight apart before they are mixed."""

_MASK = (1 << 64) - 1

BITS_OF_ONE = 0x3FF0000000000000
"""Bits of 1.0: weights count from it, so that weights of 1 hash as no weights do."""


def splitmix64(x: UInt64Array) -> UInt64Array:
    """Mix the bits of each integer (Steele, Lea and Flood 2014), modulo 2^64."""
    return mix_in_place(x.copy())


def mix_in_place(z: UInt64Array) -> UInt64Array:
    """Do what ``splitmix64`` does to the array itself."""
    z += np.uint64(GOLDEN)
    shifted = z >> np.uint64(30)
    z ^= shifted
    z *= np.uint64(FIRST_FACTOR)
    z ^= np.right_shift(z, np.uint64(27), out=shifted)
    z *= np.uint64(SECOND_FACTOR)
    z ^= np.right_shift(z, np.uint64(31), out=shifted)
    return z


@lru_cache
def salt_key(salt: int) -> np.uint64:
    """Return what is XORed to an id before it is mixed: ``splitmix64(salt)``."""
    return np.uint64(splitmix64(np.array([salt & _MASK], dtype=np.uint64))[0])


def salted_hash(row_id: UInt64Array, salt: int) -> UInt64Array:
    """Return ``splitmix64(row_id XOR splitmix64(salt))``."""
    return mix_in_place(row_id ^ salt_key(salt))
