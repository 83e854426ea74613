"""The engine compiled by numba: one pass over a block, without temporaries."""

from __future__ import annotations

import numpy as np
from numba import njit

from trueup._kernels import FloatArray, IntArray, UInt64Array
from trueup._kernels.grid import BINS_PER_UNIT, N_BINS
from trueup._kernels.words import (
    BITS_OF_ONE,
    FIRST_FACTOR,
    GOLDEN,
    ID_FACTOR,
    LABEL_FACTOR,
    SECOND_FACTOR,
    WEIGHT_FACTOR,
)

_compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
_NO_WEIGHT = np.empty(0)
_HALF = N_BINS // 2
_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST_FACTOR), np.uint64(SECOND_FACTOR)
_ONE = np.uint64(BITS_OF_ONE)
_ID, _LABEL, _WEIGHT = np.uint64(ID_FACTOR), np.uint64(LABEL_FACTOR), np.uint64(WEIGHT_FACTOR)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


def deposit(
    logit: FloatArray,
    group: IntArray,
    label: FloatArray,
    weight: FloatArray | None,
    table: FloatArray,
) -> None:
    if weight is None:
        _deposit(logit, group, label, table)
    else:
        _deposit_weighted(logit, group, label, weight, table)


def hash_sums(row_id: UInt64Array, label: FloatArray, weight: FloatArray | None) -> tuple[int, int]:
    bits = _NO_WEIGHT if weight is None else weight + 0.0  # + 0.0 turns -0.0 into 0.0
    upper, lower, high = _hash_sums(row_id, (label + 0.0).view(np.uint64), bits.view(np.uint64))
    return (int(upper) << 32) + int(lower), int(high)


def add_cells(
    code: IntArray,
    label: FloatArray,
    proba: FloatArray,
    weight: FloatArray | None,
    sums: FloatArray,
) -> None:
    _add_cells(code, label, proba, _NO_WEIGHT if weight is None else weight, sums)


@_compiled
def _deposit(logit, group, label, table):  # type: ignore[no-untyped-def]
    for i in range(len(logit)):
        scaled = logit[i] * BINS_PER_UNIT
        left = np.floor(scaled)
        u = 2.0 * (scaled - left) - 1.0
        cell = 2 * group[i] + np.int64(label[i])
        row = table[N_BINS * cell + np.int64(left) + _HALF]
        u2, u4 = u * u, u * u * u * u
        u3 = u2 * u
        row[0] += 1.0
        row[1] += u
        row[2] += u2
        row[3] += u3
        row[4] += u4
        row[5] += u4 * u
        row[6] += u4 * u2
        row[7] += u4 * u3


@_compiled
def _deposit_weighted(logit, group, label, weight, table):  # type: ignore[no-untyped-def]
    for i in range(len(logit)):
        scaled = logit[i] * BINS_PER_UNIT
        left = np.floor(scaled)
        u = 2.0 * (scaled - left) - 1.0
        cell = 2 * group[i] + np.int64(label[i])
        row = table[N_BINS * cell + np.int64(left) + _HALF]
        term = weight[i]
        for k in range(row.shape[0]):
            row[k] += term
            term *= u


@_compiled
def _mix(x):  # type: ignore[no-untyped-def]
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@_compiled
def _hash_sums(row_id, label_bits, weight_bits):  # type: ignore[no-untyped-def]
    upper, lower, high = np.uint64(0), np.uint64(0), np.uint64(0)
    weighted = len(weight_bits) > 0
    for i in range(len(row_id)):
        x = row_id[i] * _ID + label_bits[i] * _LABEL
        if weighted:
            x += (weight_bits[i] - _ONE) * _WEIGHT
        low = _mix(x)
        upper += low >> _S32
        lower += low & _LOW_HALF
        high += _mix(low)
    return upper, lower, high


@_compiled
def _add_cells(code, label, proba, weight, sums):  # type: ignore[no-untyped-def]
    weighted = len(weight) > 0
    for i in range(len(code)):
        w = weight[i] if weighted else 1.0
        row = sums[code[i]]
        row[0] += w
        row[1] += w * label[i]
        row[2] += w * proba[i]
        row[3] += w * proba[i] * proba[i]
        row[4] += w * w
        row[5] += 1.0
