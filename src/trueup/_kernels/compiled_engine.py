"""The engine in C: one pass over a block, without temporaries of its size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import trueup._kernels.loops as loops
from trueup._kernels import FloatArray, IntArray
from trueup._kernels.grid import new_table

# For few rows too, and therefore without a function of Python between.
from trueup._kernels.loops import groups_of as groups_of
from trueup._kernels.loops import hash_sums as hash_sums
from trueup._kernels.loops import logit_shifts as logit_shifts
from trueup._kernels.loops import sort_rows as sort_rows
from trueup._kernels.plain import MAX_FOLDS, Absorbed, PlainRows

BLOCK = 1 << 19  # rows between two returns to Python; the loops cut them further


def absorb(
    rows: PlainRows, moments: FloatArray, squared_moments: FloatArray | None
) -> Absorbed | None:
    rule = rows.rule
    if rule.folds > MAX_FOLDS:
        return None
    counts = np.zeros(4 * rule.n_groups, dtype=np.int64)
    n, low, high = loops.absorb(
        _given(rows.label),
        _given(rows.prediction),
        _given(rows.weight),
        _given(rows.row_id),
        rows.first_row,
        rows.is_logit,
        rule.numbers,
        moments,
        squared_moments,
        counts,
    )
    row_counts, support = counts.reshape(2, rule.n_groups, 2)
    return Absorbed(n, row_counts, support, low, high)


def deposit(
    logit: FloatArray,
    group: IntArray,
    label: FloatArray,
    weight: FloatArray | None,
    table: FloatArray,
) -> None:
    loops.deposit(_given(logit), _given(group), _given(label), _given(weight), table)


def add_cells(
    code: IntArray,
    label: FloatArray,
    proba: FloatArray,
    weight: FloatArray | None,
    sums: FloatArray,
) -> None:
    loops.add_cells(_given(code), _given(label), _given(proba), _given(weight), sums)


def code_sums(
    code: IntArray, label: FloatArray, proba: FloatArray, n_codes: int, n_columns: int
) -> FloatArray | None:
    sums = new_table(n_codes, n_columns)
    n_bad = loops.sum_codes(_given(code), _given(label), _given(proba), sums, n_columns)
    return None if n_bad else sums


def bin_sums(label: FloatArray, proba: FloatArray, inner: FloatArray) -> FloatArray | None:
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    sums = np.zeros((4 * (len(inner) + 1), 3))
    n_bad = loops.sum_bins(_given(label), _given(proba), edges, sums)
    return None if n_bad else sums.reshape(4, -1, 3).sum(axis=0)


def _given(values: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return an array as the loops take it: contiguous and aligned, which nearly all are."""
    return None if values is None else np.require(values, requirements=("C", "A"))
