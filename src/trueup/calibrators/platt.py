"""Platt scaling: a logistic regression on the logit."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.scores import FloatArray, to_logit
from trueup.errors import UndefinedMetricError


class PlattCalibrator(Calibrator):
    """Slope and intercept on the logit, fitted by maximum likelihood.

    Attributes
    ----------
    slope_, intercept_ : float
        The calibrated logit is ``slope_ * logit + intercept_``. A model that ranks worse than
        chance gets a negative slope.

    Notes
    -----
    The labels enter as they are; Platt's own smoothed targets differ by O(1 / n).

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.repeat([0.1, 0.9], 4), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> PlattCalibrator().fit(p, y).predict_proba([0.1, 0.5, 0.9])[:, 1].round(3).tolist()
    [0.25, 0.5, 0.75]
    """

    state_names = ("slope_", "intercept_")

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        logit = to_logit(p)
        _check_overlap(logit, y)
        scale = float(logit.std()) or 1.0
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8)
        model.fit(logit[:, None] / scale, y, sample_weight=weight)
        self.slope_ = float(model.coef_[0, 0]) / scale
        self.intercept_ = float(model.intercept_[0])

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(expit(self.slope_ * to_logit(p) + self.intercept_))


def _check_overlap(logit: FloatArray, y: FloatArray) -> None:
    positive, negative = logit[y == 1.0], logit[y == 0.0]
    constant = logit.min() == logit.max()
    if constant or (negative.max() > positive.min() and positive.max() > negative.min()):
        return
    raise UndefinedMetricError(
        "X must overlap between the classes; got predictions that separate them, so the slope is "
        "infinite. Use more rows or ShiftCalibrator."
    )
