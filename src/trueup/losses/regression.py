"""The losses of numbers: targets, counts and positive amounts."""

from __future__ import annotations

from numbers import Real

import numpy as np

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.losses.base import FloatArray, Loss
from trueup.losses.elementary import entropy


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


class _LogLinked(Loss):
    """A deviance of variance ``mu^power``; the bias is added to ``log mu``."""

    power: float

    def link(self, y_pred: FloatArray) -> FloatArray:
        return np.asarray(np.log(y_pred))

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        # The derivative by the bias is 0 where both weighted means are equal.
        observed = np.average(y_true * np.exp((1.0 - self.power) * margin), weights=weight)
        expected = np.average(np.exp((2.0 - self.power) * margin), weights=weight)
        if observed == 0.0:
            what = "count" if self.power == 1.0 else "target"
            raise UndefinedMetricError(
                f"y_true must hold a positive {what} where the bias is fitted",
                "zeros only",
                "Use more rows, or split=InSample() if all rows do.",
            )
        return np.asarray(np.log(observed / expected))

    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        return np.asarray(margin + bias)


class PoissonDeviance(_LogLinked):
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
    power = 1.0

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        return np.asarray(2.0 * (entropy(y_true) - y_true * margin - y_true + np.exp(margin)))


class GammaDeviance(_LogLinked):
    """Unit gamma deviance ``2 (y / mu - 1 - log(y / mu))``, as of the sizes of claims.

    It asks for the ratio to the prediction: its bias makes the mean of ``y / mu`` one, not the sum
    of the predictions right.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import GammaDeviance
    >>> GammaDeviance().values(np.array([3.0]), np.log([2.0])).round(4).tolist()
    [0.1891]
    """

    name = "gamma_deviance"
    task = "positive"
    power = 2.0

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        log_ratio = np.log(y_true) - margin
        return np.asarray(2.0 * (np.expm1(log_ratio) - log_ratio))


class TweedieDeviance(_LogLinked):
    """Unit Tweedie deviance, as of the cost of all claims of a policy, which may be 0.

    Parameters
    ----------
    power : float, default 1.5
        Power of the mean in the variance, in (1, 2); ``PoissonDeviance`` and ``GammaDeviance`` are
        the ends. Deviances of two powers are not comparable, so the name tells it.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import TweedieDeviance
    >>> loss = TweedieDeviance(1.3)
    >>> loss.name, loss.values(np.zeros(1), np.log([4.0])).round(4).tolist()
    ('tweedie_deviance_1.3', [7.54])
    """

    name = "tweedie_deviance"
    task = "counts"

    def __init__(self, power: float = 1.5) -> None:
        if not (isinstance(power, Real) and 1.0 < power < 2.0):
            raise InvalidInputError(
                "power must be in (1, 2)",
                repr(power),
                "Use poisson_deviance for 1 and gamma_deviance for 2.",
            )
        self.power = float(power)
        if self.power != 1.5:
            self.name = f"tweedie_deviance_{self.power:g}"

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        a, b = 1.0 - self.power, 2.0 - self.power
        at_truth = y_true**b / (a * b)
        return np.asarray(
            2.0 * (at_truth - y_true * np.exp(a * margin) / a + np.exp(b * margin) / b)
        )
