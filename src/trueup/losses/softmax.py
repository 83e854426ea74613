"""The losses of more than two classes, and the solver of their bias terms, one for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.errors import UndefinedMetricError
from trueup.losses.base import EPS, FloatArray, Loss
from trueup.losses.elementary import log_softmax, logsumexp, softmax

_TOLERANCE = 1e-12
_DIRECT_STEPS, _COOLED_STEPS = 20, 50
_GOOD_START = 1e-4
_SHARE_TOLERANCE = 1e-9
_FARTHEST = 1e9  # beyond it the cooling would take hundreds of rounds, and float64 lacks the digits
_SHORTENED = (1.0, 1 / 4, 1 / 16, 1 / 64)


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


class SoftmaxBrierScore(SoftmaxLogLoss):
    """Squared distance of the probabilities to the one-hot label, in [0, 2].

    It is corrected by the shift of the softmax log loss, as the Brier score of two classes is by
    that of the log loss.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import SoftmaxBrierScore
    >>> margin = np.log([[0.5, 0.25, 0.25]])
    >>> SoftmaxBrierScore().values(np.array([0.0]), margin).round(4).tolist()
    [0.375]
    """

    name = "brier_score"
    minimised_by_bias = False

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        probability = softmax(margin)
        own = np.take_along_axis(probability, y_true.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.asarray((probability**2).sum(axis=1) - 2.0 * own + 1.0)
