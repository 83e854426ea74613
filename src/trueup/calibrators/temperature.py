"""Temperature scaling: one factor on all logits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.probabilities import FloatArray, to_logit

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
