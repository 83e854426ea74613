"""Isotonic Line-Plot Scaling (ILPS)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from trueup.arguments import check_one_of, whole_number
from trueup.calibrators.base import Calibrator
from trueup.calibrators.inputs import FieldArrays, FloatArray, to_logit
from trueup.calibrators.line_plot import (
    LinePlot,
    RowsAtKnots,
    fit_line_plot,
    paper_knots,
    quantile_knots,
    rows_at_knots,
)
from trueup.extras import needed_by

_DEFAULT_KNOTS = {"quantile": 50, "paper": 100}


class ILPSCalibrator(Calibrator):
    """A non-decreasing, continuous, piecewise linear map of the logit.

    Parameters
    ----------
    knots : {"quantile", "paper"}, default "quantile"
        "quantile": knots at quantiles of the logit, continued outside with slope 1.
        "paper": ``sigmoid(a_k) = k / (K + 1)``, constant outside. With rare positives most
        logits lie outside the paper's grid.
    n_knots : int, optional
        Number of knots; 50 quantiles or the paper's 100.
    solver : {"convex", "sgd"}, default "convex"
        "convex" finds the minimum under the constraint of order. "sgd" is the paper's way: Adam on
        the log loss plus ``penalty`` times the violations (Eq. 11); it needs torch, its map may
        violate the order, and one epoch on few rows barely moves it.
    ridge : float, default 3.0
        "convex" only: strength of the pull of each piece towards slope 1, in rows.
    penalty, epochs, learning_rate, batch_size : float, int, float, int
        "sgd" only: the paper's lambda, and the training (one epoch, 0.001; the paper names no
        batch size).
    random_state : int, default 0
        "sgd" only: seed of the order of the rows.

    Attributes
    ----------
    line_plot_ : LinePlot
        The fitted map: ``knots``, ``heights``, ``unit_tails``.

    References
    ----------
    Pan et al. (2020), Field-aware Calibration, Section 4.1. Deviations: the convex solver, the
    ridge and the quantile knots, which are the defaults.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.repeat([0.1, 0.9], 4000), np.repeat([0, 0, 0, 1, 0, 1, 1, 1], 1000)
    >>> ILPSCalibrator().fit(p, y).predict_proba([0.1, 0.9])[:, 1].round(2).tolist()
    [0.25, 0.75]
    """

    state_names = ("line_plot_",)

    def __init__(
        self,
        *,
        knots: Literal["quantile", "paper"] = "quantile",
        n_knots: int | None = None,
        solver: Literal["convex", "sgd"] = "convex",
        ridge: float = 3.0,
        penalty: float = 1.0,
        epochs: int = 1,
        learning_rate: float = 1e-3,
        batch_size: int = 256,
        random_state: int = 0,
    ) -> None:
        self.knots = knots
        self.n_knots = n_knots
        self.solver = solver
        self.ridge = ridge
        self.penalty = penalty
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.random_state = random_state

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        check_one_of("solver", self.solver, ("convex", "sgd"), "Check the spelling.")
        margin = to_logit(p)
        knots = self._knots(margin, weight)
        rows = rows_at_knots(margin, knots, self._unit_tails)
        if self.solver == "convex":
            heights = fit_line_plot(rows, y, weight, knots, ridge=self.ridge)
        else:
            heights = self._descend(rows, y, weight, knots)
        self.line_plot_ = LinePlot(knots, heights, self._unit_tails)

    def _descend(
        self, rows: RowsAtKnots, y: FloatArray, weight: FloatArray, knots: FloatArray
    ) -> FloatArray:
        """Minimise Eq. 11 with Adam from the identity; the heights may violate the order a little.

        This is the paper's fit, with a soft penalty on violations of the order.
        """
        with needed_by("This calibrator"):
            import torch
        piece = torch.from_numpy(rows.piece)
        parts = (rows.position, rows.fixed, y, weight / weight.mean())
        position, fixed, label, share = (torch.from_numpy(part) for part in parts)
        heights = torch.tensor(knots, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([heights], lr=self.learning_rate)
        generator = torch.Generator().manual_seed(self.random_state)
        for _ in range(self.epochs):
            order = torch.randperm(len(y), generator=generator)
            for batch in torch.split(order, self.batch_size):
                left = piece[batch]
                step = heights.diff()
                eta = heights[left] + position[batch] * step[left] + fixed[batch]
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    eta, label[batch], weight=share[batch]
                )
                loss = loss + self.penalty * torch.relu(-step).sum()
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
        return np.asarray(heights.detach().numpy())

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(expit(self.line_plot_(to_logit(p))))

    @property
    def _unit_tails(self) -> bool:
        return self.knots == "quantile"

    def _knots(self, margin: FloatArray, weight: FloatArray) -> FloatArray:
        check_one_of("knots", self.knots, ("quantile", "paper"), "Check the spelling.")
        n_knots = _DEFAULT_KNOTS[self.knots] if self.n_knots is None else self.n_knots
        whole_number("n_knots", n_knots, 2, "Use 50.")
        if self.knots == "paper":
            return paper_knots(n_knots)
        return quantile_knots(margin, weight, n_knots)
