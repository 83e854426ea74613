"""Hashes of rows: which fold a row falls into, and which rows a number was computed from.

Both depend on the row alone, never on its neighbours, so they are the same on one machine and on
many.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

UInt64Array = NDArray[np.uint64]
_MASK = (1 << 64) - 1


def splitmix64(x: UInt64Array) -> UInt64Array:
    """Mix the bits of each integer (Steele, Lea and Flood 2014), modulo 2^64."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def salted_hash(row_id: UInt64Array, salt: int) -> UInt64Array:
    """Return ``splitmix64(row_id XOR splitmix64(salt))``."""
    return splitmix64(row_id ^ splitmix64(np.array([salt & _MASK], dtype=np.uint64)))


def row_ids(row_id: Any, n: int) -> UInt64Array:
    """Return the 64-bit id of each row: integers as they are, strings hashed, else the position.

    Parameters
    ----------
    row_id : array-like of shape (n,) or None
        Integers or strings.
    n : int
        Number of rows.

    Raises
    ------
    InvalidInputError
        If the ids are neither integers nor strings, or not one per row.
    """
    if row_id is None:
        return np.arange(n, dtype=np.uint64)
    ids = np.asarray(row_id)
    if ids.shape != (n,):
        raise InvalidInputError(
            f"row_id must have shape ({n},); got {ids.shape}. Give one id for each row."
        )
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64)
    if ids.dtype.kind in "OUT" and all(isinstance(value, str) for value in ids.tolist()):
        return _hash_strings(ids)
    raise InvalidInputError(
        f"row_id must be integers or strings; got dtype {ids.dtype}. Convert the ids to strings."
    )


def _hash_strings(ids: NDArray[Any]) -> UInt64Array:
    def digest(text: str) -> int:
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")

    return np.fromiter((digest(str(value)) for value in ids), dtype=np.uint64, count=len(ids))


def rows_fingerprint(
    row_id: UInt64Array, label: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> int:
    """Return the sum modulo 2^128 of the hash of each row's (id, label, weight).

    The sum does not depend on the order, and sums over parts add up to the sum over the whole.
    """
    low = splitmix64(splitmix64(row_id) ^ _bits(label))
    if weight is not None:
        low = splitmix64(low ^ _bits(weight))
    high = splitmix64(low)
    low_sum = (int((low >> np.uint64(32)).sum()) << 32) + int((low & np.uint64(0xFFFFFFFF)).sum())
    return ((int(high.sum()) << 64) + low_sum) % (1 << 128)


def _bits(values: NDArray[np.float64]) -> UInt64Array:
    return (values + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0: equal numbers, equal bits
