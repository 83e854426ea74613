"""The engine without a compiler: numpy, with the sums over bins as sparse products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trueup._kernels import FloatArray, IntArray, UInt64Array
from trueup._kernels.grid import BINS_PER_UNIT, N_BINS, ORDER
from trueup._kernels.plain import Absorbed, PlainRows
from trueup._kernels.words import BITS_OF_ONE, ID_FACTOR, LABEL_FACTOR, WEIGHT_FACTOR, splitmix64


def absorb(
    rows: PlainRows,  # noqa: ARG001
    moments: FloatArray,  # noqa: ARG001
    squared_moments: FloatArray | None,  # noqa: ARG001
) -> Absorbed | None:
    return None  # numpy gains nothing by it


def deposit(
    logit: FloatArray,
    group: IntArray,
    label: FloatArray,
    weight: FloatArray | None,
    table: FloatArray,
) -> None:
    scaled = logit * BINS_PER_UNIT
    left = np.floor(scaled)
    powers = np.empty((ORDER, len(logit)))
    powers[0] = 1.0
    powers[1] = 2.0 * (scaled - left) - 1.0
    for k in range(2, ORDER):
        np.multiply(powers[k - 1], powers[1], out=powers[k])
    cell = 2 * group + label.astype(np.intp)
    bins = (N_BINS * cell + left.astype(np.intp) + N_BINS // 2).astype(np.int32)
    table += _select(bins, weight, len(table)).T @ np.ascontiguousarray(powers.T)


def hash_sums(row_id: UInt64Array, label: FloatArray, weight: FloatArray | None) -> tuple[int, int]:
    low = row_id * np.uint64(ID_FACTOR) + _bits(label) * np.uint64(LABEL_FACTOR)
    if weight is not None:
        low += (_bits(weight) - np.uint64(BITS_OF_ONE)) * np.uint64(WEIGHT_FACTOR)
    low = splitmix64(low)
    halves = int((low >> np.uint64(32)).sum()), int((low & np.uint64(0xFFFFFFFF)).sum())
    return (halves[0] << 32) + halves[1], int(splitmix64(low).sum())


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused where it is used
def add_cells(
    code: IntArray,
    label: FloatArray,
    proba: FloatArray,
    weight: FloatArray | None,
    sums: FloatArray,
) -> None:
    weight = np.ones(len(code)) if weight is None else weight
    part = weight * proba
    columns = (weight, weight * label, part, part * proba, weight**2, np.ones(len(code)))
    for k, column in enumerate(columns):
        if len(sums) <= len(code):
            sums[:, k] += np.bincount(code, column, len(sums))
        else:
            np.add.at(sums[:, k], code, column)


def code_sums(
    code: IntArray,  # noqa: ARG001
    label: FloatArray,  # noqa: ARG001
    proba: FloatArray,  # noqa: ARG001
    n_codes: int,  # noqa: ARG001
) -> FloatArray | None:
    return None


def bin_sums(
    label: FloatArray,  # noqa: ARG001
    proba: FloatArray,  # noqa: ARG001
    inner: FloatArray,  # noqa: ARG001
) -> FloatArray | None:
    return None


def _select(bins: NDArray[np.int32], weight: FloatArray | None, n_bins: int) -> csr_array:
    n = len(bins)
    weight = np.ones(n) if weight is None else weight
    return csr_array((weight, bins, np.arange(n + 1, dtype=np.int32)), shape=(n, n_bins))


def _bits(values: FloatArray) -> UInt64Array:
    return (values + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0: equal numbers, equal bits
