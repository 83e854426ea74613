"""The rows of a field, put in the order of their levels: each level is then one run of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import trueup._kernels as kernels
from trueup.fields.levels import Levels
from trueup.fields.sums import LevelSums, joined
from trueup.losses import FloatArray
from trueup.read.columns import packed

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
        """First row of each level."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def sums(self) -> LevelSums:
        """Sums over each level."""
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
        """Return the rows of some levels."""
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
