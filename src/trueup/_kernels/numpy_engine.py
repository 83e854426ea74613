"""The engine without a compiler: numpy, a pass over a block for each operation."""

from __future__ import annotations

import numpy as np

from trueup._kernels import FloatArray, IntArray
from trueup._kernels.grid import BINS_PER_UNIT, N_BINS, ORDER
from trueup._kernels.hashing import hash_sums as hash_sums
from trueup._kernels.plain import Absorbed, PlainRows

BLOCK = 1 << 16


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
    u = logit * BINS_PER_UNIT
    left = np.floor(u)
    u -= left
    u *= 2.0
    u -= 1.0
    bins = 2 * group
    bins += label.astype(np.intp)
    bins *= N_BINS
    bins += N_BINS // 2
    bins += left.astype(np.intp)
    powers = np.empty(2 * len(u))  # two to a complex number: half as many scattered additions
    powers[::2] = 1.0 if weight is None else weight
    np.multiply(powers[::2], u, out=powers[1::2])
    u *= u
    square, pairs, sums = np.repeat(u, 2), powers.view(np.complex128), table.view(np.complex128)
    np.add.at(sums[:, 0], bins, pairs)
    for k in range(1, ORDER // 2):
        powers *= square
        np.add.at(sums[:, k], bins, pairs)


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused where it is used
def add_cells(
    code: IntArray,
    label: FloatArray,
    proba: FloatArray,
    weight: FloatArray | None,
    sums: FloatArray,
) -> None:
    uncertain, miss = proba * (1.0 - proba), (label - proba) ** 2
    one = np.ones(len(code))
    w = one if weight is None else weight
    wp, square = w * proba, w**2
    columns = (w, w * label, wp, wp * proba, square, one, square * uncertain, square * miss)
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


code_table = code_sums


def bin_sums(
    label: FloatArray,  # noqa: ARG001
    proba: FloatArray,  # noqa: ARG001
    inner: FloatArray,  # noqa: ARG001
) -> FloatArray | None:
    return None
