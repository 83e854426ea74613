"""Isotonic Line-Plot Scaling (ILPS)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from trueup.arguments import check_one_of
from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.line_plot import (
    LinePlot,
    fit_line_plot,
    paper_knots,
    quantile_knots,
    rows_at_knots,
)
from trueup.calibrators.probabilities import FloatArray, to_logit
from trueup.errors import InvalidInputError

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
        margin = to_logit(p)
        knots = self._knots(margin, weight)
        rows = rows_at_knots(margin, knots, self._unit_tails)
        if self.solver == "convex":
            heights = fit_line_plot(rows, y, weight, knots, ridge=self.ridge)
        elif self.solver == "sgd":
            from trueup.calibrators.networks.ilps_sgd import descend_line_plot

            heights = descend_line_plot(
                rows,
                y,
                weight,
                knots,
                penalty=self.penalty,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                seed=self.random_state,
            )
        else:
            raise InvalidInputError(
                'solver must be "convex" or "sgd"', repr(self.solver), "Check the spelling."
            )
        self.line_plot_ = LinePlot(knots, heights, self._unit_tails)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(expit(self.line_plot_(to_logit(p))))

    @property
    def _unit_tails(self) -> bool:
        return self.knots == "quantile"

    def _knots(self, margin: FloatArray, weight: FloatArray) -> FloatArray:
        check_one_of("knots", self.knots, ("quantile", "paper"), "Check the spelling.")
        n_knots = _DEFAULT_KNOTS[self.knots] if self.n_knots is None else self.n_knots
        if n_knots < 2:
            raise InvalidInputError("n_knots must be at least 2", repr(n_knots), "Use 50.")
        if self.knots == "paper":
            return paper_knots(n_knots)
        return quantile_knots(margin, weight, n_knots)
