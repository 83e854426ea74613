"""The line plot for several classes: one map of all log-probabilities, and a bias per class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import logsumexp

from trueup.calibrators.line_plot import LinePlot, quantile_knots, rows_at_knots
from trueup.calibrators.probabilities import FloatArray
from trueup.losses import solve_softmax_shift


@dataclass(frozen=True)
class SharedLinePlot:
    """``eta_k = line_plot(log p_k) + bias_k``.

    Attributes
    ----------
    line_plot : LinePlot
        Non-decreasing map, the same for all classes, so that without the biases it keeps the order
        of the classes in every row. A map per class would not.
    bias : array of shape (k,)
        One number per class, with mean 0.
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

    Parameters
    ----------
    margin : array of shape (n, k)
        Log-probabilities.
    y, weight : arrays of shape (n,)
        Class indices and positive weights.
    n_knots : int
        Knots at quantiles of all log-probabilities.
    ridge : float
        See :func:`fit_line_plot`.
    fixed : array of shape (n, k), default 0
        What is added to eta.

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
