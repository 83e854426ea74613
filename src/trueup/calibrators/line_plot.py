"""The function of Isotonic Line-Plot Scaling and its convex fit, for two classes and for more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize, nnls
from scipy.special import expit, logit, logsumexp

from trueup.calibrators.inputs import FloatArray
from trueup.errors import InvalidInputError
from trueup.losses import solve_softmax_shift

_MAX_STEPS = 50
_TOLERANCE = 1e-12
_MOST_EXCHANGES = 100  # of knots that lie level with the one before; fewer than one each is usual


def quantile_knots(margin: FloatArray, weight: FloatArray, n_knots: int) -> FloatArray:
    """Return at most ``n_knots`` distinct weighted quantiles, the extremes among them."""
    grid = np.linspace(0.0, 1.0, n_knots)
    knots = np.unique(np.quantile(margin, grid, weights=weight, method="inverted_cdf"))
    return knots if len(knots) > 1 else knots[0] + np.array([-0.5, 0.5])


def paper_knots(n_knots: int) -> FloatArray:
    """Return the paper's grid: ``sigmoid(a_k) = k / (K + 1)`` for k = 1..K."""
    return np.asarray(logit(np.arange(1, n_knots + 1) / (n_knots + 1)))


@dataclass(frozen=True)
class LinePlot:
    """A continuous piecewise linear map of the logit (Eq. 10 of the paper).

    It goes through ``heights`` (m,) at increasing ``knots`` (m,), non-decreasing where they are,
    and outside with slope 1 (``unit_tails``) or with the end values (Eq. 9). Eq. 10 as printed
    gives 0 outside the knots, that is p = 0.5.
    """

    knots: FloatArray
    heights: FloatArray
    unit_tails: bool

    def __call__(self, margin: FloatArray) -> FloatArray:
        """Return the map's value at each logit; no rounding error breaks its order."""
        inside = np.clip(margin, self.knots[0], self.knots[-1])
        piece = np.searchsorted(self.knots[1:-1], inside, side="right")
        value = self._slopes[piece] * (inside - self.knots[piece]) + self.heights[piece]
        np.minimum(value, self._upper[piece], out=value)
        return value + (margin - inside) if self.unit_tails else value

    @cached_property
    def _slopes(self) -> FloatArray:
        return np.asarray(np.diff(self.heights) / np.diff(self.knots))

    @cached_property
    def _upper(self) -> FloatArray:
        return np.maximum(self.heights[:-1], self.heights[1:])


@dataclass(frozen=True)
class RowsAtKnots:
    """Where each row lies between the knots, and what the tails and offsets add to its value."""

    piece: NDArray[np.intp]
    position: FloatArray
    fixed: FloatArray
    n_knots: int

    def value(self, heights: FloatArray) -> FloatArray:
        """Return the map's value at each row for the given heights."""
        step = np.diff(heights)
        return np.asarray(heights[self.piece] + self.position * step[self.piece] + self.fixed)

    def gradient(self, row: FloatArray) -> FloatArray:
        """Return the sum over rows of ``row`` times the derivative of the value by the heights."""
        total = np.bincount(self.piece, row, self.n_knots)
        right = np.bincount(self.piece, row * self.position, self.n_knots)
        return np.asarray(total - right + np.roll(right, 1))

    def hessian(self, row: FloatArray) -> FloatArray:
        """Return the tridiagonal sum over rows of ``row`` times the derivative's outer product."""
        linear = row * self.position
        total = np.bincount(self.piece, row, self.n_knots)
        once = np.bincount(self.piece, linear, self.n_knots)
        twice = np.bincount(self.piece, linear * self.position, self.n_knots)
        beside = (once - twice)[:-1]
        matrix = np.diag(total - 2.0 * once + twice + np.roll(twice, 1))
        return matrix + np.diag(beside, 1) + np.diag(beside, -1)


def rows_at_knots(
    margin: FloatArray, knots: FloatArray, unit_tails: bool, offset: FloatArray | float = 0.0
) -> RowsAtKnots:
    """Say where each row lies between the knots."""
    inside = np.clip(margin, knots[0], knots[-1])
    piece = np.searchsorted(knots[1:-1], inside, side="right")
    position = (inside - knots[piece]) / np.diff(knots)[piece]
    fixed = (margin - inside if unit_tails else np.zeros_like(margin)) + offset
    return RowsAtKnots(piece, position, fixed, len(knots))


def fit_line_plot(
    rows: RowsAtKnots, y: FloatArray, weight: FloatArray, knots: FloatArray, *, ridge: float
) -> FloatArray:
    """Return the non-decreasing heights, shape (m,), that minimise the penalised log loss.

    ``ridge`` is the strength of the pull of each piece towards slope 1, in rows: ``ridge *
    sum((b_k+1 - b_k - (a_k+1 - a_k))^2 / (a_k+1 - a_k))`` is added to the summed loss of labels in
    {0, 1} with positive weights.

    Notes
    -----
    The problem is convex with a tridiagonal Hessian, so Newton's method needs few passes over the
    rows; each step is a small non-negative least-squares problem in the increments of the heights,
    solved by SciPy, and is halved until the objective falls.
    """
    width = np.diff(knots)
    free = np.concatenate([[knots[0]], width])  # first height and increments: the identity

    def objective(theta: FloatArray) -> float:
        eta = rows.value(np.cumsum(theta))
        return float(
            weight @ (np.logaddexp(0.0, eta) - y * eta)
            + ridge * ((theta[1:] - width) ** 2 / width).sum()
        )

    value = objective(free)
    for _ in range(_MAX_STEPS):
        target = _newton_target(rows, y, weight, width, ridge, free)
        moved, improved = target, objective(target)
        while improved > value and np.abs(moved - free).max() > _TOLERANCE:
            moved = 0.5 * (moved + free)
            improved = objective(moved)
        gain = value - improved
        if gain > 0.0:
            free, value = moved, improved
        if gain <= _TOLERANCE * (1.0 + abs(value)):
            break
    return np.asarray(np.cumsum(free))


def _newton_target(
    rows: RowsAtKnots,
    y: FloatArray,
    weight: FloatArray,
    width: FloatArray,
    ridge: float,
    free: FloatArray,
) -> FloatArray:
    """Minimise the quadratic model of the objective over non-negative increments."""
    p = expit(rows.value(np.cumsum(free)))
    # The heights are cumulative sums of the free parameters, so derivatives are summed from the
    # right.
    gradient = np.cumsum(rows.gradient(weight * (p - y))[::-1])[::-1].copy()
    hessian = rows.hessian(weight * p * (1.0 - p))
    hessian = np.cumsum(np.cumsum(hessian[::-1], axis=0)[::-1, ::-1], axis=1)[:, ::-1].copy()
    gradient[1:] += 2.0 * ridge * (free[1:] - width) / width
    hessian[np.diag_indices_from(hessian)] += np.concatenate([[0.0], 2.0 * ridge / width])
    hessian[np.diag_indices_from(hessian)] += 1e-12 * np.trace(hessian)
    try:
        root = cholesky(hessian)
    except LinAlgError:
        raise InvalidInputError(
            "ridge must hold the knots that the rows leave free", f"{ridge}", "Use for example 3."
        ) from None
    goal = root @ free - solve_triangular(root, gradient, trans="T")
    # The first height is free: whatever the increments, it brings the first residual to zero.
    increments, _ = nnls(root[1:, 1:], goal[1:], maxiter=_MOST_EXCHANGES * len(goal))
    first = (goal[0] - root[0, 1:] @ increments) / root[0, 0]
    return np.concatenate([[first], increments])


@dataclass(frozen=True)
class SharedLinePlot:
    """``eta_k = line_plot(log p_k) + bias_k``, with biases (k,) of mean 0.

    The non-decreasing map is the same for all classes, so that without the biases it keeps the
    order of the classes in every row. A map per class would not.
    """

    line_plot: LinePlot
    bias: FloatArray

    def __call__(self, margin: FloatArray) -> FloatArray:
        """Return eta of shape (n, k) for log-probabilities of shape (n, k)."""
        return self.line_plot(margin) + self.bias


def fit_shared_line_plot(
    margin: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    *,
    n_knots: int,
    ridge: float,
    fixed: FloatArray | float = 0.0,
) -> SharedLinePlot:
    """Return the shared line plot that minimises the penalised softmax log loss.

    Log-probabilities ``margin`` are of shape (n, k), as is ``fixed``, which is added to eta. Knots
    lie at quantiles of all of them; ``ridge`` is that of :func:`fit_line_plot`.

    Notes
    -----
    The problem is convex: the loss is convex in eta, and eta is linear in the increments of the
    heights, which are bounded below by 0, and in the biases. The first height is kept, since a
    constant added to all classes changes nothing.
    """
    n, k = margin.shape
    knots = quantile_knots(margin.ravel(), np.repeat(weight, k), n_knots)
    rows, width = rows_at_knots(margin.ravel(), knots, unit_tails=True), np.diff(knots)
    observed, share = np.arange(n), weight / weight.sum()
    label, pull = y.astype(np.intp), ridge / weight.sum()

    def heights(steps: FloatArray) -> FloatArray:
        return np.cumsum(np.concatenate([knots[:1], steps]))

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        steps, bias = theta[:-k], theta[-k:]
        eta = rows.value(heights(steps)).reshape(n, k) + bias + fixed
        total = logsumexp(eta, axis=1)
        residual = share[:, None] * np.exp(eta - total[:, None])
        residual[observed, label] -= share
        excess = (steps - width) / width
        value = share @ (total - eta[observed, label]) + pull * (width @ excess**2)
        by_height = rows.gradient(residual.ravel())
        by_step = np.cumsum(by_height[::-1])[::-1][1:] + 2.0 * pull * excess
        return float(value), np.concatenate([by_step, residual.sum(axis=0)])

    start = np.concatenate([width, -solve_softmax_shift(margin + fixed, label, weight)])
    lower = np.concatenate([np.zeros(len(width)), np.full(k, -np.inf)])
    found = minimize(
        objective,
        start,
        jac=True,
        bounds=Bounds(lower, np.inf),
        method="L-BFGS-B",
        options={"maxiter": 500, "maxfun": 5000, "ftol": 1e-11, "gtol": 1e-8},
    ).x
    bias = found[-k:] - found[-k:].mean()
    return SharedLinePlot(LinePlot(knots, heights(found[:-k]), unit_tails=True), bias)
