"""Sums over the rows of each level, and the calibration errors that follow from them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from trueup.losses import FloatArray
from trueup.losses.elementary import dot

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
