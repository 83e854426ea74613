"""Hashes of rows: which fold a row falls into, and which rows a number was computed from.

Both depend on the row alone, never on its neighbours, so they are the same on one machine and on
many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array, engine
from trueup._kernels.words import salted_hash as salted_hash  # public here, for splits of one's own
from trueup._kernels.words import splitmix64
from trueup.read.ids import read_ids

FINGERPRINT_MODULUS = 1 << 128


def row_ids(row_id: Any, n: int) -> UInt64Array:
    """Return the 64-bit id of each row; without ids, its position."""
    return read_ids(row_id, n)


def timed_ids(row_id: UInt64Array, times: NDArray[Any]) -> UInt64Array:
    """Return ids that tell rows of other times apart, for a split that goes by time."""
    if times.dtype.kind == "M":
        times = times.astype("datetime64[us]").astype(np.int64)
    moment = times.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    return splitmix64(row_id ^ splitmix64(moment.view(np.uint64)))


def rows_fingerprint(
    row_id: UInt64Array, label: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> int:
    """Return the sum modulo 2^128 of the hash of each row's (id, label, weight).

    The sum does not depend on the order, and sums over parts add up to the sum over the whole.
    Weights of 1 count as no weights.
    """
    low, high = engine(len(row_id)).hash_sums(row_id, label, weight)
    return (low + (high << 64)) % FINGERPRINT_MODULUS
