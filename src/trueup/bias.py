"""The one bias term of a calibrated metric: the solvers.

For log loss the term ``c`` of Algorithm 1 (Eq. 6 of the paper) is the root of one decreasing
function, ``sum w sigmoid(l - c) - sum w y``. The root lies between ``min l - logit(ybar)`` and
``max l - logit(ybar)``, so Newton's method can be safeguarded by an exact bracket.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from trueup.errors import UndefinedMetricError

FloatArray = NDArray[np.float64]

_TOLERANCE = 1e-12
_NEWTON_TOLERANCE = 1e-7  # |f''| <= 2 |f'| here, so a Newton step s leaves an error of s^2
_MAX_STEPS = 200
_NEWTON_CLASSES = 30


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
    """
    base_rate = float(
        y_true.sum() / len(y_true) if weight is None else weight @ y_true / weight.sum()
    )
    if not 0.0 < base_rate < 1.0:
        raise UndefinedMetricError(
            f"y_true must hold both classes where the bias is fitted; got a mean of {base_rate:g}. "
            "Use more rows, or split=InSample() if all rows do."
        )
    if base_rate > 0.5:
        mirrored = solve_logit_shift(-logit, 1.0 - y_true, weight)
        return LogitShift(-mirrored.value, mirrored.steps)
    return _safeguarded_newton(logit, base_rate, weight)


def _safeguarded_newton(
    logit: FloatArray, base_rate: float, weight: FloatArray | None
) -> LogitShift:
    target = log(base_rate) - log1p(-base_rate)
    low, high, c = -inf, inf, 0.0
    share = None if weight is None else weight / weight.sum()
    steps = 0
    while steps < _MAX_STEPS:
        steps += 1
        probability = expit(logit - c)
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
        return mean, float(probability @ (1.0 - probability)) / n
    weighted = share * probability
    return float(weighted.sum()), float(weighted @ (1.0 - probability))


def _newton_proposal(c: float, mean: float, slope: float, target: float) -> float:
    if slope <= 0.0 or not 0.0 < mean < 1.0:
        return np.nan
    miss = log(mean) - log1p(-mean) - target
    return float(c + miss * mean * (1.0 - mean) / slope)


def solve_softmax_shift(
    log_proba: FloatArray, y_true: NDArray[np.intp], weight: FloatArray | None = None
) -> FloatArray:
    """Solve for the bias of each class such that predicted and observed class shares agree.

    Parameters
    ----------
    log_proba : array of shape (n, k)
        Log-probabilities, or any logits of a softmax.
    y_true : int array of shape (n,)
        Class index of each row.
    weight : array of shape (n,), optional
        Non-negative weights.

    Returns
    -------
    array of shape (k,)
        The bias terms, which are subtracted from the logits; they are fixed up to a constant,
        so their mean is set to zero.

    Raises
    ------
    UndefinedMetricError
        If a class has no weight: its bias is infinite.
    """
    n_classes = log_proba.shape[1]
    weight = np.ones(len(y_true)) if weight is None else weight
    share = np.bincount(y_true, weights=weight, minlength=n_classes) / weight.sum()
    if (share == 0.0).any():
        missing = int(np.flatnonzero(share == 0.0)[0])
        raise UndefinedMetricError(
            "y_true must hold every class where the bias is fitted; "
            f"got no row of class {missing}. "
            "Use more rows, or split=InSample() if all rows do."
        )
    improve = _newton_step if n_classes <= _NEWTON_CLASSES else _scaling_step
    weight = weight / weight.sum()
    start = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
    bias = logsumexp(start, axis=0, b=weight[:, None]) - np.log(share)  # far shifts: Newton stalls
    for _ in range(_MAX_STEPS):
        step = improve(log_proba - bias, share, weight)
        bias = bias + step
        if np.abs(step).max() <= _TOLERANCE:
            break
    return np.asarray(bias - bias.mean())


def _scaling_step(logit: FloatArray, share: FloatArray, weight: FloatArray) -> FloatArray:
    """Scale iteratively: cheap for many classes, and it never overshoots."""
    predicted = weight @ softmax(logit, axis=1)
    step = np.log(predicted) - np.log(share)
    return np.asarray(step - step.mean())


def _newton_step(logit: FloatArray, share: FloatArray, weight: FloatArray) -> FloatArray:
    """Newton on the mean log loss, with the last class held fixed; halved until the loss falls."""
    probability = softmax(logit, axis=1)
    predicted = weight @ probability
    gradient = (share - predicted)[:-1]
    hessian = np.diag(predicted) - (probability * weight[:, None]).T @ probability
    step = np.zeros_like(share)
    step[:-1] = -np.linalg.lstsq(hessian[:-1, :-1], gradient, rcond=None)[0]
    step -= step.mean()

    def loss(shift: FloatArray) -> float:
        return float(weight @ logsumexp(logit - shift, axis=1) + share @ shift)

    start, allowance = loss(np.zeros_like(share)), 1e-15
    while loss(step) > start + allowance and np.abs(step).max() > _TOLERANCE:
        step = step / 2.0
    return step
