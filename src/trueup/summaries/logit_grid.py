"""Rows of a binary classifier as moments on a grid of logits.

Each bin keeps ``sum w u^k`` for k = 0 to 7, ``u`` in [-1, 1] being the place inside the bin. The
moments are turned into weights at the eight Chebyshev-Lobatto nodes of the bin, which integrate
every polynomial of degree 7 exactly, and therefore the loss, its derivatives and its square to
about 1e-12, whatever the bias term is. Rows beyond the grid are kept as linear tails: three points
with the same weight, sum and sum of squares, where the log loss is linear to 1e-16, and to 1e-12
after a bias that moves them up to 10 towards zero. A larger one is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import Engine
from trueup._kernels.grid import LIMIT, N_BINS, ORDER, WIDTH, new_table
from trueup._kernels.plain import Absorbed, PlainRows
from trueup.arrays import Arrays
from trueup.losses import FloatArray
from trueup.read.rows import Rows
from trueup.splits import GroupArray
from trueup.summaries.points import Points, State, concatenate

_TAIL_NODES = np.arange(3.0)  # in units of the mean excess over LIMIT
_TAIL_WEIGHTS_OF_MOMENTS = np.linalg.inv(np.vander(_TAIL_NODES, increasing=True).T)
_LARGEST_BIAS = 10.0  # moves the tails to where the loss is still linear
_NODES = np.cos(np.pi * np.arange(ORDER) / (ORDER - 1))  # with the ends: they bracket all rows
_WEIGHTS_OF_MOMENTS = np.linalg.inv(np.vander(_NODES, increasing=True).T)


class LogitGrid(State):
    """Moments by group, label and bin; tails by group, label and side.

    24 KiB for each group, and 48 KiB with weights, which need sums over ``w^2`` as well for the
    standard errors.
    """

    def __init__(self, n_groups: int) -> None:
        self.n_groups = n_groups
        self.moments = new_table(n_groups * 2 * N_BINS, ORDER)
        self.tails = np.zeros((n_groups * 2 * 2, len(_TAIL_NODES)))
        self.squared_moments: FloatArray | None = None
        self.squared_tails: FloatArray | None = None

    @np.errstate(over="ignore", invalid="ignore")  # compute() refuses what is not finite
    def add(self, rows: Rows, groups: GroupArray, kernels: Engine) -> None:
        if rows.margin.min() < -LIMIT or rows.margin.max() >= LIMIT:
            outside = (rows.margin < -LIMIT) | (rows.margin >= LIMIT)
            self._add_tails(rows.only(outside), groups[outside])
            rows, groups = rows.only(~outside), groups[~outside]
        if rows.weight is not None:
            squared_moments, _ = self._keep_squares()
            square = rows.weight**2
            kernels.deposit(rows.margin, groups, rows.y_true, square, squared_moments)
        elif self.squared_moments is not None:
            kernels.deposit(rows.margin, groups, rows.y_true, None, self.squared_moments)
        kernels.deposit(rows.margin, groups, rows.y_true, rows.weight, self.moments)

    def absorb(self, rows: PlainRows, kernels: Engine) -> Absorbed | None:
        if rows.weight is not None:
            return kernels.absorb(rows, self.moments, self._keep_squares()[0])
        if self.squared_moments is not None:
            return None
        return kernels.absorb(rows, self.moments, None)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: LogitGrid) -> None:
        if other.squared_moments is not None or self.squared_moments is not None:
            squared_moments, squared_tails = self._keep_squares()
            squared_moments += _or(other.squared_moments, other.moments)
            squared_tails += _or(other.squared_tails, other.tails)
        self.moments += other.moments
        self.tails += other.tails

    @np.errstate(over="ignore", invalid="ignore")
    def points(self) -> Points:
        return concatenate([self._inner_points(), self._tail_points()])

    def exact_biases(self) -> tuple[float, float]:
        below, above = self.tails[:, 0].reshape(-1, 2).sum(axis=0)
        return -_LARGEST_BIAS if below else -np.inf, _LARGEST_BIAS if above else np.inf

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {"moments": self.moments, "tails": self.tails}
        if self.squared_moments is not None and self.squared_tails is not None:
            arrays |= {"squared_moments": self.squared_moments, "squared_tails": self.squared_tails}
        return arrays

    def pattern(self, arrays: Arrays) -> Arrays:
        with_weights = {"squared_moments": self.moments, "squared_tails": self.tails}
        return self.to_arrays() | (with_weights if with_weights.keys() & arrays.keys() else {})

    def restore(self, arrays: Arrays) -> None:
        self.moments, self.tails = arrays["moments"], arrays["tails"]
        self.squared_moments = arrays.get("squared_moments")
        self.squared_tails = arrays.get("squared_tails")

    def _keep_squares(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums over squared weights; so far they were those over weights of one."""
        if self.squared_moments is None or self.squared_tails is None:
            self.squared_moments = new_table(*self.moments.shape)
            self.squared_moments += self.moments
            self.squared_tails = self.tails.copy()
        return self.squared_moments, self.squared_tails

    def _add_tails(self, rows: Rows, groups: GroupArray) -> None:
        side = groups * 4 + rows.y_true.astype(np.intp) * 2 + (rows.margin > 0.0)
        excess = np.abs(rows.margin) - LIMIT
        weight = np.ones(len(excess)) if rows.weight is None else rows.weight
        if rows.weight is not None or self.squared_tails is not None:
            _add_powers(self._keep_squares()[1], side, excess, weight**2)
        _add_powers(self.tails, side, excess, weight)

    def _inner_points(self) -> Points:
        occupied = np.flatnonzero(self.moments.any(axis=1))
        bins = occupied % N_BINS
        centre = (bins + 0.5) * WIDTH - LIMIT
        squares = _or(self.squared_moments, self.moments)
        cell = np.repeat(occupied // N_BINS, ORDER)
        return Points(
            y_true=(cell % 2).astype(np.float64),
            margin=(centre[:, None] + 0.5 * WIDTH * _NODES).ravel(),
            weight=(self.moments[occupied] @ _WEIGHTS_OF_MOMENTS.T).ravel(),
            squared_weight=(squares[occupied] @ _WEIGHTS_OF_MOMENTS.T).ravel(),
            group=cell // 2,
        )

    def _tail_points(self) -> Points:
        occupied = np.flatnonzero(self.tails[:, 0] > 0.0)
        tails = self.tails[occupied]
        scale = np.maximum(tails[:, 1] / tails[:, 0], 1.0)[:, None] ** np.arange(3)
        squares = _or(self.squared_tails, self.tails)[occupied]
        side = np.where(occupied % 2 == 1, 1.0, -1.0)[:, None]
        cell = np.repeat(occupied // 2, len(_TAIL_NODES))
        return Points(
            y_true=(cell % 2).astype(np.float64),
            margin=(side * (LIMIT + scale[:, 1:2] * _TAIL_NODES)).ravel(),
            weight=(tails / scale @ _TAIL_WEIGHTS_OF_MOMENTS.T).ravel(),
            squared_weight=(squares / scale @ _TAIL_WEIGHTS_OF_MOMENTS.T).ravel(),
            group=cell // 2,
        )


def _add_powers(
    sums: FloatArray, cell: NDArray[np.intp], excess: FloatArray, weight: FloatArray
) -> None:
    powers = excess[:, None] ** np.arange(sums.shape[1])
    np.add.at(sums, cell, weight[:, None] * powers)


def _or(squares: FloatArray | None, plain: FloatArray) -> FloatArray:
    """Return the sums over squared weights; without weights they are the plain sums."""
    return plain if squares is None else squares
