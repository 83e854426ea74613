"""The engine without a compiler: numpy, a pass over a block for each operation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import FloatArray, IntArray, UInt64Array
from trueup._kernels.grid import BINS_PER_UNIT, LIMIT, N_BINS, ORDER
from trueup._kernels.hashing import hash_sums as hash_sums
from trueup._kernels.hashing import mix_in_place
from trueup._kernels.plain import Absorbed, PlainRows

BLOCK = 1 << 16
_EPS = float(np.finfo(np.float64).eps)
_STEPS, _TOLERANCE = 12, 1e-7


def absorb(
    rows: PlainRows,
    moments: FloatArray,
    squared_moments: FloatArray | None,  # noqa: ARG001
) -> Absorbed | None:
    if len(moments) > BLOCK:  # counting rows by the table would cost more than the rows themselves
        return None
    if rows.weight is not None or not _are_plain(rows):
        return None
    ids, n = rows.row_id, len(rows.label)
    if ids is None:
        ids = np.arange(rows.first_row, rows.first_row + n, dtype=np.uint64)
    logit = rows.prediction if rows.is_logit else np.log(rows.prediction / (1.0 - rows.prediction))
    before = _rows_of_cells(moments)
    deposit(logit, rows.rule.groups(ids), rows.label, None, moments)
    counts = (_rows_of_cells(moments) - before).reshape(-1, 2)
    return Absorbed(n, counts, counts, *hash_sums(ids, rows.label, None))


def _are_plain(rows: PlainRows) -> bool:
    """Tell by labels and extremes whether each row is plain; NaN is not."""
    low, high = (-LIMIT, np.nextafter(LIMIT, 0.0)) if rows.is_logit else (_EPS, 1.0 - _EPS)
    if not (rows.prediction.min() >= low and rows.prediction.max() <= high):
        return False
    return bool(((rows.label == 0.0) | (rows.label == 1.0)).all())


def _rows_of_cells(moments: FloatArray) -> NDArray[np.int64]:
    """Return the rows of each group and label, which the bins count where there are no weights."""
    return np.asarray(moments[:, 0].reshape(-1, N_BINS).sum(axis=1), dtype=np.int64)


def groups_of(row_id: UInt64Array, rule: tuple[int, int, int], out: IntArray) -> None:
    key, folds, limit = rule
    hashed = mix_in_place(row_id ^ np.uint64(key))
    if folds == 0:
        out[:] = hashed >= np.uint64(limit)
        return
    whole = hashed // np.uint64(folds)
    whole *= np.uint64(folds)
    np.subtract(hashed, whole, out=out.view(np.uint64))  # numpy's % is far slower


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
    left += N_BINS * label  # in float64, which is exact: a single conversion to whole numbers
    left += N_BINS // 2
    bins = left.astype(np.intp)
    bins += 2 * N_BINS * group
    powers, square = np.empty((2, len(u), 2))  # two to a complex number: half as many additions
    powers[:, 0] = 1.0 if weight is None else weight
    np.multiply(powers[:, 0], u, out=powers[:, 1])
    u *= u
    square[:, 0] = square[:, 1] = u
    pairs, sums = powers.view(np.complex128)[:, 0], table.view(np.complex128)
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
    n_columns: int,  # noqa: ARG001
) -> FloatArray | None:
    return None


def bin_sums(
    label: FloatArray,  # noqa: ARG001
    proba: FloatArray,  # noqa: ARG001
    inner: FloatArray,  # noqa: ARG001
) -> FloatArray | None:
    return None


def sort_rows(
    code: IntArray,
    columns: tuple[FloatArray, ...],
    count: IntArray,
    order: IntArray,
    out: tuple[FloatArray, ...],
) -> None:
    count[:] = np.bincount(code, minlength=len(count))
    narrow = np.uint16 if len(count) <= 1 << 16 else np.uint64  # sixteen bits go by radix
    order[:] = np.argsort(code.astype(narrow, copy=False), kind="stable")
    for values, place in zip(columns, out, strict=True):
        np.take(values, order, out=place)


@np.errstate(all="ignore")  # what goes wrong ends in no root
def logit_shifts(
    margin: FloatArray,
    label: FloatArray,
    weight: FloatArray | None,
    group: IntArray,
    chosen: NDArray[np.bool_],
) -> list[float] | None:
    chosen_rows = _Chosen(group, chosen.astype(np.float64))
    total, positive = chosen_rows.sums(weight), chosen_rows.sums(_product(weight, label))
    base_rate, sign = positive / total, 1.0
    if base_rate[0] > 0.5:  # the rarer class keeps its digits
        base_rate, sign = chosen_rows.sums(_product(weight, 1.0 - label)) / total, -1.0
    odds, target = np.exp(-sign * margin), np.log(base_rate / (1.0 - base_rate))
    share = chosen_rows.rows(weight)
    c = np.zeros(1)  # one for all at first
    for _ in range(_STEPS):
        probability = np.exp(c)[:, None] * odds
        probability += 1.0
        np.divide(1.0, probability, out=probability)
        weighted = share * probability
        mean = weighted.sum(axis=1) / total
        slope = mean - np.einsum("ij,ij->i", weighted, probability) / total
        step = (np.log(mean / (1.0 - mean)) - target) * mean * (1.0 - mean) / slope
        c = c + step
        if np.abs(step).max() <= _TOLERANCE:
            return (sign * c).tolist()  # type: ignore[no-any-return]
    return None


def _product(weight: FloatArray | None, values: FloatArray) -> FloatArray:
    return values if weight is None else weight * values


@dataclass(frozen=True)
class _Chosen:
    """Selections of rows by their groups: of float shape (k, n_groups), ones and zeros."""

    group: IntArray
    groups: FloatArray

    def sums(self, values: FloatArray | None) -> FloatArray:
        """Return the sum over the rows of each selection; their number where there are none."""
        return self.groups @ np.bincount(self.group, values, self.groups.shape[1])

    def rows(self, weight: FloatArray | None) -> FloatArray:
        """Return the weight of each row in each selection, shape (k, n)."""
        return _product(weight, np.take(self.groups, self.group, axis=1))
