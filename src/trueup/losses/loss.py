"""A loss = value per row + link + bias correction.

The *margin* of a prediction is the scale on which one bias term acts: the logit of a probability,
the logarithm of a rate, the prediction itself in regression. ``y_logit`` enters as a margin.
A new loss is a subclass of :class:`Loss`; ``trueup.testing.check_loss`` tells whether it keeps the
rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.errors import UndefinedMetricError
from trueup.losses.bias import solve_logit_shift, solve_softmax_shift
from trueup.losses.elementary import entropy, expit, logsumexp

FloatArray = NDArray[np.float64]
Task = Literal["binary", "multiclass", "regression", "counts", "positive"]

EPS = float(np.finfo(np.float64).eps)
"""Probabilities are clipped to [EPS, 1 - EPS] inside a logarithm, as scikit-learn does."""


class Loss(ABC):
    """Value per row, link and bias correction of one loss; lower is better.

    Attributes
    ----------
    name : str
        Key of the loss, in the words of scikit-learn.
    task : str
        What the loss takes: "binary", "multiclass", "regression", "counts" (targets from 0 on and
        positive predictions) or "positive" (positive targets and predictions).
    minimised_by_bias : bool
        Whether the bias term is the one with the lowest mean loss.

    Examples
    --------
    >>> from trueup.losses import LOSSES
    >>> sorted(LOSSES)[:3]
    ['brier_score', 'gamma_deviance', 'log_loss']
    """

    name: ClassVar[str]
    task: ClassVar[Task]
    minimised_by_bias: ClassVar[bool] = True

    @abstractmethod
    def link(self, y_pred: FloatArray) -> FloatArray:
        """Return the margin of predictions that were checked for the task."""

    @abstractmethod
    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        """Return the loss of each row, shape (n,)."""

    @abstractmethod
    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        """Return the bias term: shape (), or (k,) where the margin has k columns."""

    @abstractmethod
    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        """Return the margin after the bias correction: one bias for all rows, or one for each."""


class _LogitShifted(Loss):
    """A loss of probabilities that is corrected by the log loss's shift of the logits."""

    task = "binary"

    def link(self, y_pred: FloatArray) -> FloatArray:
        clipped = np.clip(y_pred, EPS, 1.0 - EPS)
        odds = 1.0 - clipped
        np.divide(clipped, odds, out=odds)
        return np.log(odds, out=odds)  # to 4e-16; log1p is far slower

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        return np.asarray(solve_logit_shift(margin, y_true, weight).value)

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        return np.asarray(margin - bias)


class LogLoss(_LogitShifted):
    """Negative log-likelihood of a 0/1 label, in nats (Section 3, Calibrated Log Loss).

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import LogLoss
    >>> loss = LogLoss()
    >>> margin = loss.link(np.array([0.5, 0.5]))
    >>> loss.values(np.array([0.0, 1.0]), margin).round(4).tolist()
    [0.6931, 0.6931]
    """

    name = "log_loss"

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        wrong = (1.0 - 2.0 * y_true) * margin  # logaddexp(0, wrong) is three times slower
        return np.asarray(np.maximum(wrong, 0.0) + np.log1p(np.exp(-np.abs(wrong))))


class BrierScore(_LogitShifted):
    """Squared error of a probability, in [0, 1].

    The shift that minimises the Brier score itself is not a convex problem and can have two
    minima; the log loss's shift makes the mean prediction equal the base rate, which is what
    calibration in the mean asks for.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import BrierScore
    >>> loss = BrierScore()
    >>> margin = loss.link(np.array([0.5, 0.5]))
    >>> loss.values(np.array([0.0, 1.0]), margin).round(4).tolist()
    [0.25, 0.25]
    """

    name = "brier_score"
    minimised_by_bias = False

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        return np.asarray((expit(margin) - y_true) ** 2)


class SoftmaxLogLoss(Loss):
    """Negative log-likelihood of a class index, in nats; one bias per class with mean zero.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import SoftmaxLogLoss
    >>> loss = SoftmaxLogLoss()
    >>> margin = loss.link(np.array([[0.5, 0.25, 0.25]]))
    >>> loss.values(np.array([0.0]), margin).round(4).tolist()
    [0.6931]
    """

    name = "log_loss"
    task = "multiclass"

    def link(self, y_pred: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.clip(y_pred, EPS, 1.0)))

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        own = np.take_along_axis(margin, y_true.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.asarray(logsumexp(margin, axis=1) - own)

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        return solve_softmax_shift(margin, y_true.astype(np.intp), weight)

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        return np.asarray(margin - bias)


class SquaredError(Loss):
    """Squared error, in squared units of the target (Section 3, Calibrated Quadratic Loss).

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import SquaredError
    >>> loss = SquaredError()
    >>> margin = loss.link(np.array([1.5, 2.0]))
    >>> loss.values(np.array([1.0, 2.0]), margin).round(4).tolist()
    [0.25, 0.0]
    """

    name = "mean_squared_error"
    task = "regression"

    def link(self, y_pred: FloatArray) -> FloatArray:
        return y_pred

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        return np.asarray((y_true - margin) ** 2)

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        return np.asarray(np.average(y_true - margin, weights=weight))

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        return np.asarray(margin + bias)


class PoissonDeviance(Loss):
    """Unit Poisson deviance ``2 (y log(y / mu) - y + mu)``; the bias is added to ``log mu``.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import PoissonDeviance
    >>> loss = PoissonDeviance()
    >>> margin = loss.link(np.array([1.0, 2.0]))
    >>> loss.values(np.array([1.0, 2.0]), margin).round(4).tolist()
    [0.0, 0.0]
    """

    name = "poisson_deviance"
    task = "counts"

    def link(self, y_pred: FloatArray) -> FloatArray:
        return np.asarray(np.log(y_pred))

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        return np.asarray(2.0 * (entropy(y_true) - y_true * margin - y_true + np.exp(margin)))

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        observed = np.average(y_true, weights=weight)
        if observed == 0.0:
            raise UndefinedMetricError(
                "y_true must hold a positive count where the bias is fitted",
                "zeros only",
                "Use more rows, or split=InSample() if all rows do.",
            )
        return np.asarray(np.log(observed / np.average(np.exp(margin), weights=weight)))

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        return np.asarray(margin + bias)
