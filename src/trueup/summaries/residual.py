"""Rows of a regression as central moments of the residual.

The squared error is a polynomial of degree 2 in the residual and its square one of degree 4, so
five moments of each group give everything exactly. They are turned into weights at five points.
"""

from __future__ import annotations

from math import comb

import numpy as np

from trueup._kernels import Engine
from trueup.arrays import Arrays
from trueup.losses import FloatArray
from trueup.read.rows import Rows
from trueup.splits import GroupArray
from trueup.summaries.points import SMALLEST_SUM, Points, State
from trueup.summaries.storage import corrupt

_ORDER = 5
_NODES = np.arange(-2.0, 3.0)  # in standard deviations around the mean
_WEIGHTS_OF_MOMENTS = np.linalg.inv(np.vander(_NODES, increasing=True).T)


class ResidualMoments(State):
    """``sum w (r - centre)^k`` and ``sum w^2 (r - centre)^k``, k = 0 to 4, of each group.

    The centre of a group is the mean of the residuals it has seen; a merge moves both states to the
    common mean, which keeps the digits of a small spread around a large mean.
    """

    def __init__(self, n_groups: int) -> None:
        self.centre = np.zeros(n_groups)
        self.sums = np.zeros((n_groups, 2, _ORDER))

    @np.errstate(over="ignore", invalid="ignore")  # scoring refuses what is not finite
    def add(self, rows: Rows, groups: GroupArray, _kernels: Engine) -> None:
        n_groups = len(self.centre)
        residual = rows.y_true - rows.margin
        weight = np.ones(len(residual)) if rows.weight is None else rows.weight
        block = ResidualMoments(n_groups)
        total = np.bincount(groups, weight, n_groups)
        first = np.bincount(groups, weight * residual, n_groups)
        np.divide(first, total, out=block.centre, where=total > 0.0)
        deviation = residual - block.centre[groups]
        for i, term in enumerate((weight, weight**2)):
            for k in range(_ORDER):
                block.sums[:, i, k] = np.bincount(groups, term * deviation**k, n_groups)
        self.merge(block)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: ResidualMoments) -> None:
        total = self.sums[:, 0, 0] + other.sums[:, 0, 0]
        share = np.divide(other.sums[:, 0, 0], total, out=np.zeros_like(total), where=total > 0.0)
        centre = self.centre + share * (other.centre - self.centre)
        self.sums = _moved(self, centre) + _moved(other, centre)
        self.centre = centre

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def points(self) -> Points:
        group = np.flatnonzero(self.sums[:, 0, 0] > 0.0)
        sums = self.sums[group]
        variance = sums[:, 0, 2] / sums[:, 0, 0]
        spread = np.sqrt(np.maximum(variance, 0.0))[:, None]  # 0: all points are at the centre
        unit = np.where(spread > 0.0, spread, 1.0)
        scaled = sums / unit[:, :, None] ** np.arange(_ORDER)
        weight = scaled @ _WEIGHTS_OF_MOMENTS.T
        residual = (self.centre[group][:, None] + spread * _NODES).ravel()
        return Points(
            y_true=residual,
            margin=np.zeros_like(residual),
            weight=weight[:, 0].ravel(),
            squared_weight=weight[:, 1].ravel(),
            group=np.repeat(group, _ORDER),
        )

    def keeps_digits(self) -> bool:
        second, fourth = self.sums[:, :, 2], self.sums[:, :, 4]
        lost = (second > 0.0) & (fourth < SMALLEST_SUM)
        return bool(np.isfinite(self.sums).all()) and not lost.any()

    def to_arrays(self) -> Arrays:
        return {"centre": self.centre, "sums": self.sums}

    def restore(self, arrays: Arrays) -> None:
        if (arrays["sums"][:, :, 0] < 0.0).any():
            raise corrupt("weights that are not negative")
        self.centre, self.sums = arrays["centre"], arrays["sums"]


def _moved(state: ResidualMoments, centre: FloatArray) -> FloatArray:
    """Return the sums of a state about another centre, by the binomial theorem."""
    step = (state.centre - centre)[:, None]
    sums = np.zeros_like(state.sums)
    for k in range(_ORDER):
        for j in range(k + 1):
            sums[:, :, k] += comb(k, j) * state.sums[:, :, j] * step ** (k - j)
    return sums
