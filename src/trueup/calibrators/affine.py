"""Shift, temperature and Platt scaling: the logit times a factor, plus a constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from trueup.calibrators.base import Calibrator
from trueup.calibrators.inputs import FieldArrays, FloatArray, to_logit
from trueup.losses import solve_logit_shift, solve_softmax_shift


class ShiftCalibrator(Calibrator):
    """Subtract one bias from the logit, such that predicted and observed class shares agree.

    Attributes
    ----------
    bias_ : float or array of shape (k,)
        The bias term of the calibrated log loss; with k > 2 classes one per class, with mean zero.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.full(4, 0.5), np.array([0, 0, 0, 1])
    >>> ShiftCalibrator().fit(p, y).predict_proba(p)[0].round(2).tolist()
    [0.75, 0.25]
    """

    state_names = ("bias_",)
    multiclass = True

    bias_: FloatArray | float

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        if p.ndim == 2:
            self.bias_ = solve_softmax_shift(to_logit(p), y.astype(np.intp), weight)
        else:
            self.bias_ = solve_logit_shift(to_logit(p), y, weight).value

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        corrected = to_logit(p) - self.bias_
        return np.asarray(softmax(corrected, axis=1) if p.ndim == 2 else expit(corrected))


_LIMIT = 1e3


class TemperatureCalibrator(Calibrator):
    """Divide the logits by one temperature, fitted by maximum likelihood.

    Attributes
    ----------
    temperature_ : float
        Above 1 the model was overconfident. The search is limited to [1e-3, 1e3]; the upper limit
        means that the predictions rank no better than chance, the lower that they separate the
        classes.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.repeat([0.1, 0.9], 4), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> TemperatureCalibrator().fit(p, y).predict_proba(p)[0].round(3).tolist()
    [0.75, 0.25]
    """

    state_names = ("temperature_",)
    multiclass = True

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:  # noqa: ARG002
        logit, share = to_logit(p), weight / weight.sum()

        def derivative(inverse_temperature: float) -> float:
            if p.ndim == 2:
                residual = softmax(inverse_temperature * logit, axis=1)
                residual[np.arange(len(y)), y.astype(np.intp)] -= 1.0
                return float(share @ (residual * logit).sum(axis=1))
            return float((share * logit) @ (expit(inverse_temperature * logit) - y))

        self.temperature_ = 1.0 / _increasing_root(derivative)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:  # noqa: ARG002
        scaled = to_logit(p) / self.temperature_
        return np.asarray(softmax(scaled, axis=1) if p.ndim == 2 else expit(scaled))


def _increasing_root(function: Callable[[float], float]) -> float:
    """Return the root of an increasing function in [1 / _LIMIT, _LIMIT], or the nearer limit."""
    if function(1.0 / _LIMIT) >= 0.0:
        return 1.0 / _LIMIT
    high = 1.0
    while function(high) < 0.0:
        if high >= _LIMIT:
            return _LIMIT
        high = min(4.0 * high, _LIMIT)
    return float(brentq(function, 1.0 / _LIMIT, high, xtol=1e-12))


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
