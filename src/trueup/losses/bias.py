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

from trueup.errors import UndefinedMetricError
from trueup.losses.elementary import dot, log_softmax, logsumexp

FloatArray = NDArray[np.float64]

_TOLERANCE = 1e-12
_NEWTON_TOLERANCE = 1e-7  # |f''| <= 2 |f'| here, so a Newton step s leaves an error of s^2
_MAX_STEPS = 200
_DIRECT_STEPS, _COOLED_STEPS = 20, 50
_GOOD_START = 1e-4
_SHARE_TOLERANCE = 1e-9
_FARTHEST = 1e9  # beyond it the cooling would take hundreds of rounds, and float64 lacks the digits
_SHORTENED = (1.0, 1 / 4, 1 / 16, 1 / 64)


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
        If a class has no weight: its bias is infinite. If predicted and observed shares still
        differ by more than a factor of 1 + 1e-9 at the end.

    Notes
    -----
    Newton runs on the logarithms of the shares, nearly linear in the bias of a rare class. Where
    the logits are so confident that it stalls, the problem is solved at a high temperature first,
    which is then lowered by halves.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import solve_softmax_shift
    >>> logits = np.log([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> solve_softmax_shift(logits, np.array([0, 1, 2])).round(3).tolist()
    [0.476, -0.035, -0.441]
    """
    n_classes = log_proba.shape[1]
    weight = np.ones(len(y_true)) if weight is None else weight
    share = np.bincount(y_true, weights=weight, minlength=n_classes) / weight.sum()
    if (share == 0.0).any():
        missing = int(np.flatnonzero(share == 0.0)[0])
        raise UndefinedMetricError(
            "y_true must hold every class where the bias is fitted",
            f"no row of class {missing}",
            "Use more rows, or split=InSample() if all rows do.",
        )
    weight = weight / weight.sum()
    problem = _ClassShares(log_proba, share, weight)
    start = problem.log_ratio(log_softmax(log_proba))
    bias = problem.newton(start, _TOLERANCE, _DIRECT_STEPS)
    if not problem.gap(bias) <= _SHARE_TOLERANCE:
        if np.ptp(log_proba, axis=1).max() <= _FARTHEST:
            bias = _cooled(problem)
        _require_equal_shares(problem, bias)
    return bias


@dataclass(frozen=True)
class _ClassShares:
    """The equations: the predicted share of each class equals the observed one."""

    logit: FloatArray
    share: FloatArray
    weight: FloatArray

    def log_ratio(self, log_proba: FloatArray) -> FloatArray:
        """Return log(predicted share / observed share); it can't underflow."""
        with np.errstate(divide="ignore"):  # rows of weight zero
            log_weight = np.log(self.weight)[:, None]
        return np.asarray(logsumexp(log_proba + log_weight, axis=0) - np.log(self.share))

    def log_proba(self, bias: FloatArray) -> FloatArray:
        return np.asarray(log_softmax(self.logit - bias))

    def gap(self, bias: FloatArray) -> float:
        return float(np.ptp(self.log_ratio(self.log_proba(bias))))

    def newton(self, bias: FloatArray, tolerance: float, max_steps: int) -> FloatArray:
        """Improve the bias until the gap is below a tolerance, or the steps are used up."""
        log_proba = self.log_proba(bias)
        ratio = self.log_ratio(log_proba)
        for _ in range(max_steps):
            if np.ptp(ratio) <= tolerance:
                break
            bias, log_proba, ratio = self._improved(bias, log_proba, ratio)
        return np.asarray(bias - bias.mean())

    def _improved(
        self, bias: FloatArray, log_proba: FloatArray, ratio: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Take the longest Newton step that narrows the gap, else scale, which never widens it."""
        step = self._newton_step(log_proba, ratio)
        for length in _SHORTENED:
            longer = self.log_proba(bias + length * step)
            found = self.log_ratio(longer)
            if np.ptp(found) < (1.0 - length / 4.0) * np.ptp(ratio):
                return bias + length * step, longer, found
        scaled = self.log_proba(bias + ratio)
        return bias + ratio, scaled, self.log_ratio(scaled)

    def _newton_step(self, log_proba: FloatArray, ratio: FloatArray) -> FloatArray:
        """Return the Newton step with the last class held fixed."""
        probability, predicted = np.exp(log_proba), self.share * np.exp(ratio)
        slope = np.diag(predicted) - (probability * self.weight[:, None]).T @ probability
        step = np.zeros_like(ratio)
        step[:-1] = np.linalg.lstsq(slope[:-1, :-1], (predicted * ratio)[:-1], rcond=None)[0]
        return step


def _cooled(problem: _ClassShares) -> FloatArray:
    """Solve for logits divided by a temperature, which falls to 1."""
    temperature = max(1.0, float(np.ptp(problem.logit, axis=1).max()) / 4.0)
    bias = np.zeros_like(problem.share)
    while True:
        softer = _ClassShares(problem.logit / temperature, problem.share, problem.weight)
        tolerance = _TOLERANCE if temperature == 1.0 else _GOOD_START
        bias = softer.newton(bias / temperature, tolerance, _COOLED_STEPS) * temperature
        if temperature == 1.0:
            return bias
        temperature = max(1.0, temperature / 2.0)


def _require_equal_shares(problem: _ClassShares, bias: FloatArray) -> None:
    ratio = problem.log_ratio(problem.log_proba(bias))
    if not np.ptp(ratio) <= _SHARE_TOLERANCE:
        worst = int(np.abs(ratio).argmax())
        share = problem.share[worst]
        raise UndefinedMetricError(
            "the bias of each class must make predicted and observed shares equal",
            (
                f"{share * np.exp(ratio[worst]):.6g} for {share:.6g} of class {worst}, because "
                "the logits are too far apart"
            ),
            "Scale the logits down, or merge rare classes.",
        )
