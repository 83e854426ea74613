"""Isotonic regression and histogram binning: observed rates along the probability."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from trueup.arguments import check_one_of, whole_number
from trueup.calibrators.base import Calibrator
from trueup.calibrators.inputs import FieldArrays, FloatArray


class HistogramCalibrator(Calibrator):
    """Replace a probability by the share of positives in its bin.

    Parameters
    ----------
    n_bins : int, default 20
        Number of bins at most.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equal count or of equal width. Where positives are rare, equal width puts nearly all
        rows into one bin.

    Attributes
    ----------
    edges_ : array of shape (m + 1,)
        Bin k holds the probabilities in (edges_[k], edges_[k + 1]]; the first one holds 0 too.
    rates_ : array of shape (m,)
        Calibrated probability of each bin, limited to [1 / (n + 2), 1 - 1 / (n + 2)] with n the
        bin's sum of weights; an empty bin keeps its centre.

    Notes
    -----
    The map need not be monotone, so the AUC can fall.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.repeat([0.1, 0.9], 4), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> HistogramCalibrator(n_bins=2).fit(p, y).predict_proba([0.1, 0.9])[:, 1].tolist()
    [0.25, 0.75]
    """

    state_names = ("edges_", "rates_")

    def __init__(
        self, n_bins: int = 20, *, strategy: Literal["quantile", "uniform"] = "quantile"
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        self.edges_ = self._bin_edges(p, weight)
        n_bins = len(self.edges_) - 1
        index = self._bin(p)
        count = np.bincount(index, weight, n_bins)
        positive = np.bincount(index, weight * y, n_bins)
        centre = 0.5 * (self.edges_[:-1] + self.edges_[1:])
        rate = np.divide(positive, count, out=centre, where=count > 0.0)
        end = np.where(count > 0.0, 1.0 / (count + 2.0), 0.0)
        self.rates_ = np.clip(rate, end, 1.0 - end)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(self.rates_[self._bin(p)])

    def _bin_edges(self, p: FloatArray, weight: FloatArray) -> FloatArray:
        whole_number("n_bins", self.n_bins, 1, "Use for example 20.")
        grid = np.linspace(0.0, 1.0, self.n_bins + 1)
        check_one_of("strategy", self.strategy, ("quantile", "uniform"), "Check the spelling.")
        if self.strategy == "uniform":
            return grid
        inner = np.unique(np.quantile(p, grid[1:-1], weights=weight, method="inverted_cdf"))
        return np.concatenate([[0.0], inner[(inner > 0.0) & (inner < 1.0)], [1.0]])

    def _bin(self, p: FloatArray) -> NDArray[np.intp]:
        return np.searchsorted(self.edges_[1:-1], p, side="left")


class IsotonicCalibrator(Calibrator):
    """The non-decreasing map that fits the labels best; scikit-learn's solver does the work.

    Attributes
    ----------
    x_thresholds_, y_thresholds_ : arrays of shape (m,)
        Points that are joined by lines; outside, the end values hold.

    Notes
    -----
    The ends of an isotonic fit are 0 and 1 as a rule, for which one wrong label costs an infinite
    log loss. The map is therefore limited to [1 / (n + 2), 1 - 1 / (n + 2)], n the sum of weights.

    References
    ----------
    Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> IsotonicCalibrator().fit(p, y).predict_proba(p)[:, 1].round(3).tolist()
    [0.167, 0.5, 0.5, 0.833]
    """

    state_names = ("x_thresholds_", "y_thresholds_")

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        end = 1.0 / (weight.sum() + 2.0)
        solver = IsotonicRegression(y_min=end, y_max=1.0 - end, out_of_bounds="clip")
        solver.fit(p, y, sample_weight=weight)
        self.x_thresholds_ = np.asarray(solver.X_thresholds_, dtype=np.float64)
        self.y_thresholds_ = np.asarray(solver.y_thresholds_, dtype=np.float64)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(np.interp(p, self.x_thresholds_, self.y_thresholds_))
