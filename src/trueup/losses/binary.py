"""The losses of a binary probability, and the solver of their one bias term.

The term ``c`` of Algorithm 1 (Eq. 6 of the paper) is the root of one decreasing function,
``sum w sigmoid(l - c) - sum w y``. The root lies between ``min l - logit(ybar)`` and
``max l - logit(ybar)``, so Newton's method can be safeguarded by an exact bracket.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p

import numpy as np
from numpy.typing import NDArray

import trueup._kernels as kernels
from trueup.errors import UndefinedMetricError
from trueup.losses.base import EPS, FloatArray, Loss
from trueup.losses.elementary import dot, expit

_TOLERANCE = 1e-12
_NEWTON_TOLERANCE = 1e-7  # |f''| <= 2 |f'| here, so a Newton step s leaves an error of s^2
_MAX_STEPS = 200
_AT_ONCE = 1 << 18  # numbers that a core's cache holds


@dataclass(frozen=True)
class LogitShift:
    """Root of the calibration equation and the Newton steps that it took."""

    value: float
    steps: int


def solve_logit_shift(
    logit: FloatArray, y_true: FloatArray, weight: FloatArray | None = None
) -> LogitShift:
    """Solve ``sum w sigmoid(logit - c) = sum w y`` for ``c``.

    Parameters
    ----------
    logit : array of shape (n,)
        Finite log-odds.
    y_true : array of shape (n,)
        Labels in [0, 1].
    weight : array of shape (n,), optional
        Non-negative weights; integer weights equal repeated rows exactly.

    Returns
    -------
    LogitShift
        The root, to 1e-12, and the number of steps.

    Raises
    ------
    UndefinedMetricError
        If the weighted mean of ``y_true`` is 0 or 1: the root is infinite.

    Notes
    -----
    Newton runs on ``logit(mean sigmoid(l - c)) - logit(ybar)``, nearly linear in ``c``; a step that
    leaves the bracket is replaced by bisection; the ends of the bracket that no step has set are
    taken from the logits when they are needed. Where more than half of the labels are
    positive the mirrored problem is solved, so that no digit is lost in ``1 - mean``.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import solve_logit_shift
    >>> round(float(solve_logit_shift(np.array([1.0, 3.0]), np.array([0.0, 1.0])).value), 6)
    2.0
    """
    base_rate = _mean(y_true, weight)
    if base_rate <= 0.5:
        _require_both_classes(base_rate, base_rate)
        return _safeguarded_newton(logit, base_rate, weight)
    negative_rate = _mean(1.0 - y_true, weight)  # by rounding it may be above one half as well
    _require_both_classes(negative_rate, base_rate)
    mirrored = _safeguarded_newton(-logit, negative_rate, weight)
    return LogitShift(-mirrored.value, mirrored.steps)


def _mean(values: FloatArray, weight: FloatArray | None) -> float:
    return float(
        values.sum() / len(values) if weight is None else dot(weight, values) / weight.sum()
    )


def _require_both_classes(rarer: float, base_rate: float) -> None:
    if not 0.0 < rarer < 1.0:
        raise UndefinedMetricError(
            "y_true must hold both classes where the bias is fitted",
            f"a mean of {base_rate:g}",
            "Use more rows, or split=InSample() if all rows do.",
        )


@np.errstate(over="ignore")  # of logits below -709, whose probability is then 0
def _safeguarded_newton(
    logit: FloatArray, base_rate: float, weight: FloatArray | None
) -> LogitShift:
    target = log(base_rate) - log1p(-base_rate)
    low, high, c = -inf, inf, 0.0
    share = None if weight is None else weight / weight.sum()
    steps = 0
    while steps < _MAX_STEPS:
        steps += 1
        probability = 1.0 / (1.0 + np.exp(c - logit))  # scipy's expit takes twice as long
        mean, slope = _mean_and_slope(probability, share)
        low, high = (c, high) if mean > base_rate else (low, c)
        proposal, tolerance = _newton_proposal(c, mean, slope, target), _NEWTON_TOLERANCE
        if not low <= proposal <= high:
            low, high = max(low, logit.min() - target), min(high, logit.max() - target)
            proposal, tolerance = 0.5 * (low + high), _TOLERANCE
        step, c = proposal - c, proposal
        if abs(step) <= tolerance * max(1.0, abs(c)):
            break
    return LogitShift(c, steps)


def _mean_and_slope(probability: FloatArray, share: FloatArray | None) -> tuple[float, float]:
    """Return the means of p and of p (1 - p)."""
    if share is None:
        n = len(probability)
        mean = float(np.add.reduce(probability)) / n  # the method costs as much again on few rows
        return mean, dot(probability, 1.0 - probability) / n
    weighted = share * probability
    return float(weighted.sum()), dot(weighted, 1.0 - probability)


def _newton_proposal(c: float, mean: float, slope: float, target: float) -> float:
    if slope <= 0.0 or not 0.0 < mean < 1.0:
        return np.nan
    miss = log(mean) - log1p(-mean) - target
    return float(c + miss * mean * (1.0 - mean) / slope)


class _LogitShifted(Loss):
    """A loss of probabilities that is corrected by the log loss's shift of the logits."""

    task = "binary"

    def link(self, y_pred: FloatArray) -> FloatArray:
        clipped = np.minimum(np.maximum(y_pred, EPS), 1.0 - EPS)  # np.clip takes twice as long
        odds = 1.0 - clipped
        np.divide(clipped, odds, out=odds)
        return np.log(odds, out=odds)  # to 4e-16; log1p is far slower

    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        return np.asarray(solve_logit_shift(margin, y_true, weight).value)

    def fit_biases(
        self,
        y_true: FloatArray,
        margin: FloatArray,
        weight: FloatArray | None,
        group: NDArray[np.intp],
        fitted_on: NDArray[np.bool_],
    ) -> list[FloatArray]:
        shifts = None
        parts = fitted_on[1:]
        is_most = 2 * np.count_nonzero(parts) > parts.size
        shares_rows = is_most and len(group) * len(fitted_on) <= _AT_ONCE
        if shares_rows and type(self).fit_bias is _LogitShifted.fit_bias:
            own = np.ascontiguousarray(group, dtype=np.intp)
            shifts = kernels.engine.logit_shifts(margin, y_true, weight, own, fitted_on)
        if shifts is None:
            return super().fit_biases(y_true, margin, weight, group, fitted_on)
        return [np.asarray(shift) for shift in shifts]

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
