"""Platt scaling: a logistic regression on the logit."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.probabilities import FloatArray, to_logit
from trueup.losses import solve_logit_shift


class PlattCalibrator(Calibrator):
    """Slope and intercept on the logit, fitted by maximum likelihood.

    Attributes
    ----------
    slope_, intercept_ : float
        The calibrated logit is ``slope_ * logit + intercept_``. A model that ranks worse than
        chance gets a negative slope, one that predicts a constant the slope 1.

    Notes
    -----
    The labels enter as they are. Where the predictions separate the classes, the slope would be
    infinite and Platt's smoothed targets, which differ by O(1 / n), take the place of the labels.

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
        if logit.min() == logit.max():
            self.slope_ = 1.0
            self.intercept_ = -solve_logit_shift(logit, y, weight).value
            return
        centre, scale = float(logit.mean()), float(logit.std())
        scaled = (logit - centre) / scale
        if _separate(logit, y):
            scaled, y, weight = _with_smoothed_targets(scaled, y, weight)
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8)
        model.fit(scaled[:, None], y, sample_weight=weight)
        self.slope_ = float(model.coef_[0, 0]) / scale
        self.intercept_ = float(model.intercept_[0]) - self.slope_ * centre

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        return np.asarray(expit(self.slope_ * to_logit(p) + self.intercept_))


def _separate(logit: FloatArray, y: FloatArray) -> bool:
    positive, negative = logit[y == 1.0], logit[y == 0.0]
    return bool(negative.max() <= positive.min() or positive.max() <= negative.min())


def _with_smoothed_targets(
    logit: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each row twice, with either label, weighted by Platt's targets."""
    n_positive, n_negative = float(weight @ y), float(weight @ (1.0 - y))
    target = np.where(y == 1.0, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    labels = np.repeat([1.0, 0.0], len(y))
    return np.tile(logit, 2), labels, np.concatenate([weight * target, weight * (1.0 - target)])
