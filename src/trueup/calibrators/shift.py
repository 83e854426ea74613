"""One bias term: the smallest calibrator."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from trueup.calibrators.base import Calibrator, FieldArrays
from trueup.calibrators.probabilities import FloatArray, to_logit
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
