"""The rows of a field in the order of their levels, and the sums over the rows of each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

import trueup._kernels as kernels
from trueup.fields.levels import Levels
from trueup.losses import FloatArray
from trueup.losses.elementary import dot
from trueup.read.columns import packed

TABLE_COLUMNS = 8
"""Columns of the table that kernels add up; see :meth:`LevelSums.of_table`."""

_LINEAR = ("total", "label", "proba", "square")
_QUADRATIC = ("weight_square", "variance", "miss_square")


@dataclass(frozen=True)
class LevelSums:
    """Sums over the rows of each of k levels; y, p and w are label, probability and weight.

    ``count`` are rows; ``total``, ``label``, ``proba`` and ``square`` sums of w, w y, w p and w
    p^2; ``weight_square`` of w^2; ``variance`` of w^2 p (1 - p), the variance of ``label`` if the
    probabilities are right; ``miss_square`` of w^2 (y - p)^2.
    """

    names: tuple[str, ...]
    count: NDArray[np.intp]
    total: FloatArray
    label: FloatArray
    proba: FloatArray
    square: FloatArray
    weight_square: FloatArray
    variance: FloatArray
    miss_square: FloatArray

    @classmethod
    def of_table(cls, names: tuple[str, ...], table: FloatArray) -> LevelSums:
        """Return the columns of a kernel's table.

        They are w, w y, w p, w p^2, w^2, 1, w^2 p (1 - p) and w^2 (y - p)^2.
        """
        total, label, proba, square, weight_square, count, *squares = table.T
        linear = (total, label, proba, square, weight_square)
        return cls(names, count.astype(np.intp), *linear, *squares)

    def only(self, levels: slice | NDArray[np.bool_]) -> LevelSums:
        """Return the sums of some levels, without their names."""
        names = ("count", *_LINEAR, *_QUADRATIC)
        return LevelSums((), **{name: getattr(self, name)[levels] for name in names})

    def scaled(self, factor: FloatArray, count: NDArray[np.intp]) -> LevelSums:
        """Return the sums for weights times a factor of each level, over so many rows."""
        linear = {name: getattr(self, name) * factor for name in _LINEAR}
        square = {name: getattr(self, name) * factor**2 for name in _QUADRATIC}
        return LevelSums(self.names, count, **linear, **square)

    @property
    def slope(self) -> FloatArray:
        """Sum of w p (1 - p): by how much a shift of the log-odds moves ``proba``."""
        return np.maximum(self.proba - self.square, 0.0)

    @property
    def weight_spread(self) -> FloatArray:
        """Squared coefficient of variation of the weights; 0 where all are equal."""
        return np.asarray(self.weight_square * self.count / self.total**2 - 1.0)

    @property
    def pair_share(self) -> FloatArray:
        """Factor of the pairs of rows of a level in ``squared_error``; 0 for levels of one row."""
        spare = self.total - self.weight_square / self.total
        several = spare > 1e-9 * self.total
        rows = float(self.total[several].sum())
        return np.divide(1.0 / max(rows, 1e-300), spare, np.zeros_like(spare), where=several)

    def mean_over_rows(self, values: FloatArray) -> float:
        """Return the mean of a value of each level, over rows."""
        return float(dot(self.total, values) / self.total.sum())


def joined(parts: Sequence[LevelSums]) -> LevelSums:
    """Return the levels of all parts."""
    if len(parts) == 1:
        return parts[0]
    names = tuple(chain.from_iterable(part.names for part in parts))
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("count", *_LINEAR, *_QUADRATIC)
    }
    return LevelSums(names, **columns)


def absolute_error(sums: LevelSums) -> float:
    """Return the Field-ECE (Eq. 5)."""
    return float(np.abs(sums.label - sums.proba).sum() / sums.total.sum())


def relative_error(sums: LevelSums, epsilon: float) -> float:
    """Return the Field-RCE (Eq. 6)."""
    gap = np.abs(sums.label - sums.proba)
    return float((gap / (sums.label / sums.total + epsilon)).sum() / sums.total.sum())


def squared_error(sums: LevelSums) -> float:
    """Return the mean over rows of the squared bias of their level, unbiased.

    Notes
    -----
    In a level of n rows with residuals r, ``((sum r)^2 - sum r^2) / (n (n - 1))`` is an unbiased
    estimate of the squared mean of r, whatever the labels are distributed like. Under ``y ~ p`` its
    expectation is 0. Levels of one row say nothing and are left out.
    """
    pairs = (sums.label - sums.proba) ** 2 - sums.miss_square
    return dot(sums.pair_share, pairs)


_PART_ROWS = 1 << 16


@dataclass(frozen=True)
class Cells:
    """Rows of binary predictions, level by level; arrays of rows are of shape (n,).

    ``count`` has the rows of each level, at least one; ``weight`` is None where all are 1;
    ``order`` says where each row came from among these n.
    """

    names: tuple[str, ...]
    count: NDArray[np.intp]
    y_true: FloatArray
    y_proba: FloatArray
    weight: FloatArray | None
    order: NDArray[np.intp]

    @cached_property
    def first(self) -> NDArray[np.intp]:
        return np.cumsum(self.count) - self.count

    @cached_property
    def sums(self) -> LevelSums:
        parts = self.parts()
        return self._own_sums() if parts[0] is self else joined([part.sums for part in parts])

    def over(self, values: FloatArray) -> FloatArray:
        """Return the sum over each level, along the last axis."""
        return np.asarray(np.add.reduceat(values, self.first, axis=-1), dtype=np.float64)

    def weighted(self, values: FloatArray, weight: FloatArray | None) -> FloatArray:
        """Return the weighted sum over each level."""
        return self.over(values if weight is None else weight * values)

    def of_rows(self, values: FloatArray) -> FloatArray:
        """Return the value of the level of each row."""
        return np.asarray(np.repeat(values, self.count), dtype=np.float64)

    def parts(self) -> tuple[Cells, ...]:
        """Return the levels in parts of so few rows that temporaries stay in a core's cache."""
        is_one = len(self.y_true) <= _PART_ROWS or len(self.count) == 1
        return (self,) if is_one else self._several_parts

    @cached_property
    def _several_parts(self) -> tuple[Cells, ...]:  # kept, as are the sums of each
        ends, start, found = np.cumsum(self.count), 0, []
        while start < len(ends):
            limit = self.first[start] + _PART_ROWS
            stop = max(start + 1, int(np.searchsorted(ends, limit, side="right")))
            rows = slice(self.first[start], ends[stop - 1])
            part = Cells(
                self.names[start:stop],
                self.count[start:stop],
                self.y_true[rows],
                self.y_proba[rows],
                None if self.weight is None else self.weight[rows],
                self.order[rows],
            )
            found.append(part)
            start = stop
        return tuple(found)

    def keep(self, levels: NDArray[np.bool_]) -> Cells:
        if levels.all():
            return self
        kept = self._rows(np.repeat(levels, self.count))
        names = tuple(name for name, stays in zip(self.names, levels, strict=True) if stays)
        return replace(kept, names=names, count=self.count[levels])

    def positive_weight(self) -> Cells:
        """Return the rows of positive weight; each level must have one."""
        if self.weight is None or self.weight.all():
            return self
        positive = self.weight > 0.0
        count = np.add.reduceat(positive.astype(np.intp), self.first)
        return replace(self._rows(positive), count=count)

    def _own_sums(self) -> LevelSums:
        y, p, w = self.y_true, self.y_proba, self.weight
        uncertain, miss = 1.0 - p, y - p
        uncertain *= p
        miss *= miss
        squared_weight = None if w is None else w**2
        count = self.count.astype(np.float64)
        levels = np.repeat(np.arange(len(count)), self.count)

        def one_by_one(values: FloatArray) -> FloatArray:
            """Return the sums to the last bit as a pass over unsorted rows would."""
            return np.bincount(levels, values, len(count)).astype(np.float64, copy=False)

        return LevelSums(
            names=self.names,
            count=self.count,
            total=count if w is None else one_by_one(w),
            label=self.over(y) if w is None else one_by_one(w * y),
            proba=one_by_one(p if w is None else w * p),
            square=self.weighted(p * p, w),
            weight_square=count if squared_weight is None else self.over(squared_weight),
            variance=self.weighted(uncertain, squared_weight),
            miss_square=self.weighted(miss, squared_weight),
        )

    def _rows(self, rows: NDArray[np.bool_]) -> Cells:
        weight = None if self.weight is None else _unless_ones(self.weight[rows])
        return replace(
            self,
            y_true=self.y_true[rows],
            y_proba=self.y_proba[rows],
            weight=weight,
            order=_ranks(self.order[rows]),
        )


def group_rows(
    levels: Levels, y_true: FloatArray, y_proba: FloatArray, weight: FloatArray | None
) -> Cells:
    """Put rows in the order of their levels, which must all occur; weights of 1 are none."""
    given = (y_true, y_proba) if weight is None else (y_true, y_proba, weight)
    columns = tuple(packed(values) for values in given)
    count, order = np.empty(len(levels.names), np.intp), np.empty(len(y_true), np.intp)
    label, proba, *weights = out = tuple(np.empty(len(y_true)) for _ in columns)
    kernels.engine.sort_rows(packed(levels.codes), columns, count, order, out)
    own = _unless_ones(weights[0]) if weights else None
    return Cells(levels.names, count, label, proba, own, order)


def _ranks(values: NDArray[np.intp]) -> NDArray[np.intp]:
    ranks = np.empty_like(values)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks


def _unless_ones(weight: FloatArray) -> FloatArray | None:
    return None if (weight == 1.0).all() else weight


def squared_error_slope(cells: Cells, y_proba: FloatArray) -> FloatArray:
    """Return by how much a label moves the change of ``squared_error`` to other predictions.

    Those are in the order of the cells. Given both predictions the change is linear in the labels,
    so its standard error follows from the rows' residuals without resampling.
    """
    change = y_proba - cells.y_proba
    moved = change if cells.weight is None else cells.weight * change
    others = cells.of_rows(cells.over(moved)) - moved
    share = -2.0 * cells.of_rows(cells.sums.pair_share)
    return np.asarray(share * others if cells.weight is None else share * cells.weight * others)
