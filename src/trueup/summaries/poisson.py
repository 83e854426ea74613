"""Rows of a Poisson regression as moments of the three numbers that the deviance is linear in.

With the bias ``b`` the deviance of a row is ``2 (a - b y + (e^b - 1) mu)``, where ``2 a`` is the
deviance without it. The sums of ``(a, y, mu)``, and of their products in pairs, therefore give
every loss, its bias and its standard error. They are turned into weights at ten points. Of counts
in the millions, with a bias that is not small, the standard error keeps about five digits.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from trueup._kernels import Engine
from trueup.arrays import Arrays
from trueup.losses import FloatArray, PoissonDeviance
from trueup.read.rows import Rows
from trueup.splits import GroupArray
from trueup.summaries.points import SMALLEST_SUM, Points, State
from trueup.summaries.storage import corrupt

_PAIRS = [(i, j) for i in range(4) for j in range(i, 4)]  # of the numbers 1, a, y and mu
_NODES = np.vstack(
    [
        np.zeros((1, 3)),
        np.eye(3),
        -np.eye(3),
        [np.eye(3)[i] + np.eye(3)[j] for i, j in combinations(range(3), 2)],
    ]
)  # in standard deviations around the mean


def _products(values: FloatArray) -> FloatArray:
    extended = np.column_stack([np.ones(len(values)), values])
    return np.column_stack([extended[:, i] * extended[:, j] for i, j in _PAIRS])


_WEIGHTS_OF_MOMENTS = np.linalg.inv(_products(_NODES).T)


class _LinearDeviance(PoissonDeviance):
    """The Poisson deviance of points ``(a, y, mu)``, which stand in for the margin."""

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:  # noqa: ARG002
        return np.asarray(2.0 * margin[:, 0])

    def fit_bias(
        self,
        y_true: FloatArray,  # noqa: ARG002
        margin: FloatArray,
        weight: FloatArray | None,
    ) -> FloatArray:
        counts, rates = np.average(margin[:, 1:], axis=0, weights=weight)
        one_rate = np.array([np.log(rates)])
        return super().fit_bias(np.array([counts]), one_rate, None)

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        half, count, rate = margin.T
        moved = half - bias * count + np.expm1(bias) * rate
        return np.column_stack([moved, count, np.exp(bias) * rate])


class PoissonMoments(State):
    """``sum w x x^T`` and ``sum w^2 x x^T`` of each group, with ``x = (1, (a, y, mu) - centre)``.

    The centre of a group is the mean of the rows it has seen, as in ``ResidualMoments``.
    """

    loss_of_points = _LinearDeviance()

    def __init__(self, n_groups: int) -> None:
        self.centre = np.zeros((n_groups, 3))
        self.sums = np.zeros((n_groups, 2, 4, 4))

    @np.errstate(over="ignore", invalid="ignore")  # compute() refuses what is not finite
    def add(self, rows: Rows, groups: GroupArray, _kernels: Engine) -> None:
        y = rows.y_true
        half = 0.5 * rows.loss.values(y, rows.margin)
        values = np.column_stack([half, y, np.exp(rows.margin)])
        weight = np.ones(len(y)) if rows.weight is None else rows.weight
        block = PoissonMoments(len(self.centre))
        for group in np.unique(groups[weight > 0.0]):
            mine = groups == group
            block._set(group, values[mine], weight[mine])
        self.merge(block)

    @np.errstate(over="ignore", invalid="ignore")
    def merge(self, other: PoissonMoments) -> None:
        total = self.sums[:, 0, 0, 0] + other.sums[:, 0, 0, 0]
        share = np.divide(
            other.sums[:, 0, 0, 0], total, out=np.zeros_like(total), where=total > 0.0
        )
        centre = self.centre + share[:, None] * (other.centre - self.centre)
        self.sums = _moved(self, centre) + _moved(other, centre)
        self.centre = centre

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def points(self) -> Points:
        group = np.flatnonzero(self.sums[:, 0, 0, 0] > 0.0)
        sums = self.sums[group]
        variance = np.diagonal(sums[:, 0], axis1=1, axis2=2)[:, 1:] / sums[:, 0, 0, :1]
        spread = np.sqrt(np.maximum(variance, 0.0))
        unit = np.column_stack([np.ones(len(group)), np.where(spread > 0.0, spread, 1.0)])
        scaled = sums / (unit[:, :, None] * unit[:, None, :])[:, None]
        moments = np.stack([scaled[:, :, i, j] for i, j in _PAIRS], axis=-1)
        weight = moments @ _WEIGHTS_OF_MOMENTS.T
        margin = self.centre[group][:, None] + spread[:, None] * _NODES
        return Points(
            y_true=margin[:, :, 1].ravel(),
            margin=margin.reshape(-1, 3),
            weight=weight[:, 0].ravel(),
            squared_weight=weight[:, 1].ravel(),
            group=np.repeat(group, len(_NODES)),
        )

    def keeps_digits(self) -> bool:
        squares = np.diagonal(self.sums, axis1=2, axis2=3)
        lost = (squares > 0.0) & (squares < SMALLEST_SUM)
        tiny = (self.centre != 0.0) & (np.abs(self.centre) < SMALLEST_SUM**0.5)
        return bool(np.isfinite(self.sums).all()) and not (lost.any() or tiny.any())

    def to_arrays(self) -> Arrays:
        return {"centre": self.centre, "sums": self.sums}

    def restore(self, arrays: Arrays) -> None:
        if (arrays["sums"][:, :, 0, 0] < 0.0).any():
            raise corrupt("weights that are not negative")
        self.centre, self.sums = arrays["centre"], arrays["sums"]

    def _set(self, group: int, values: FloatArray, weight: FloatArray) -> None:
        """Hold these rows in a group that has held none."""
        self.centre[group] = weight @ values / weight.sum()
        extended = np.column_stack([np.ones(len(values)), values - self.centre[group]])
        for i, term in enumerate((weight, weight**2)):
            self.sums[group, i] = (term[:, None] * extended).T @ extended


def _moved(state: PoissonMoments, centre: FloatArray) -> FloatArray:
    """Return the sums of a state about another centre."""
    move = np.broadcast_to(np.eye(4), (len(centre), 4, 4)).copy()
    move[:, 1:, 0] = state.centre - centre
    return np.asarray(move[:, None] @ state.sums @ move.transpose(0, 2, 1)[:, None])
