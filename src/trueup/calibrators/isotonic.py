"""Isotonic regression of the label on the probability."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.probabilities import FloatArray


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
