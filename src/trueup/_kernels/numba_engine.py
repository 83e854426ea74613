"""The engine compiled by numba: one pass over a block, without temporaries of its size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import FloatArray, IntArray, UInt64Array, numba_loops
from trueup._kernels.grid import new_table
from trueup._kernels.plain import MAX_FOLDS, Absorbed, PlainRows

BLOCK = 1 << 17  # as many as a conversion to float64 leaves in the cache; the loops cut it further
_NO_WEIGHT = np.empty(0)
_NO_ID = np.empty(0, dtype=np.uint64)


def absorb(
    rows: PlainRows, moments: FloatArray, squared_moments: FloatArray | None
) -> Absorbed | None:
    rule = rows.rule
    if rule.folds > MAX_FOLDS:
        return None
    counts = np.zeros((2, 2 * rule.n_groups), dtype=np.int64)
    n, upper, lower, high = numba_loops.absorb(
        (_given(rows.label), _given(rows.prediction), _given(rows.weight)),
        rows.is_logit,
        (_given(_NO_ID if rows.row_id is None else rows.row_id), np.uint64(rows.first_row)),
        (rule.key, rule.folds, np.uint64(rule.limit)),
        (moments, moments if squared_moments is None else squared_moments),
        counts,
    )
    row_counts, support = counts.reshape(2, rule.n_groups, 2)
    return Absorbed(n, row_counts, support, (int(upper) << 32) + int(lower), int(high))


def deposit(
    logit: FloatArray,
    group: IntArray,
    label: FloatArray,
    weight: FloatArray | None,
    table: FloatArray,
) -> None:
    place, row = logit.copy(), 2 * group + label.astype(np.int64)
    numba_loops.places(place, row)
    numba_loops.deposit(row, place, _given(weight), table)


def hash_sums(row_id: UInt64Array, label: FloatArray, weight: FloatArray | None) -> tuple[int, int]:
    upper, lower, high = numba_loops.hash_sums(_given(row_id), _given(label), _given(weight))
    return (int(upper) << 32) + int(lower), int(high)


def add_cells(
    code: IntArray,
    label: FloatArray,
    proba: FloatArray,
    weight: FloatArray | None,
    sums: FloatArray,
) -> None:
    numba_loops.add_cells(_given(code), _given(label), _given(proba), _given(weight), sums)


def code_sums(
    code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int
) -> FloatArray | None:
    sums = new_table(n_codes, 4)
    n_bad = numba_loops.code_sums(_given(code), _given(label), _given(proba), sums)
    return None if n_bad else sums


def code_table(
    code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int
) -> FloatArray | None:
    sums = new_table(n_codes, 8)
    n_bad = numba_loops.code_table(_given(code), _given(label), _given(proba), sums)
    return None if n_bad else sums


def bin_sums(label: FloatArray, proba: FloatArray, inner: FloatArray) -> FloatArray | None:
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    sums = np.zeros((4, len(inner) + 1, 3))
    n_bad = numba_loops.bin_sums(_given(label), _given(proba), edges, sums)
    return None if n_bad else sums.sum(axis=0)


def _given(values: NDArray[Any] | None) -> NDArray[Any]:
    """Return a view that is read only: numba would compile again for arrays that are not."""
    view = (_NO_WEIGHT if values is None else values).view()
    view.flags.writeable = False
    return view
