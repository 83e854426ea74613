"""Estimates that learn from the errors that earlier batches realized.

The logarithm of a batch's realized error, over that of the reference, is taken as
``level + belief * log(estimate / reference) + noise``. The level drifts back to 0 from batch to
batch, the belief starts at 1: an estimate that moves too much or the wrong way is believed less.
How far levels wander differs between streams by a factor of ten, so that four scales of it are
filtered side by side (Kalman) and weighed by how well each one foretold the labels that came. Last,
the interval is stretched to the quantile of the scores of earlier intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.trust.interval import CONFIDENCE_LEVEL

SCALES: FloatArray = np.array([0.1, 0.2, 0.4, 0.8])
"""Standard deviations of the level that are considered, on the log scale."""

SCALE_PRIOR = (0.15, 0.3, 0.35, 0.2)
"""Their probabilities before anything is known of the stream; see ``scale_prior``."""

_KEPT = 0.93  # of the level from one batch to the next
_BELIEF_SD = 0.5
_NOISE = 0.1**2
_BELIEVED = 1.5  # log moves of the estimate beyond it are taken as they are
_OUTLIER_SD = 3.0
_TAILS = 4  # degrees of freedom of the likelihood: one odd batch must not decide on the scale
_PRIOR_SCORES = 10
_SCORE_LEVEL = 0.93  # above 0.9, as the quantile of few scores lies too low
_SCORE_HALF_LIFE = 24.0
_LEAST_STRETCH = 0.4
_MOST_LOG = float(np.log(1e3))
_Z = float(ndtri(0.5 + CONFIDENCE_LEVEL / 2.0))


@dataclass(frozen=True)
class Raw:
    """An estimate as features and predictions give it, and the mean error of the reference."""

    mse: float
    low: float
    high: float
    reference: float


@dataclass(frozen=True)
class Outlook:
    """Expected logarithm of the realized error, and its standard deviation before stretching."""

    log_mean: float
    log_sd: float


@dataclass(frozen=True)
class Earlier:
    """A batch before the one at hand, with what was known when the latter was estimated.

    ``realized`` is its error, where labels had come; ``outlook`` what was expected of it before,
    where None leaves it out of the scores.
    """

    raw: Raw
    realized: float | None = None
    outlook: Outlook | None = None


@dataclass(frozen=True)
class Learned:
    """An estimate with its 90% interval, corrected by what earlier batches realized.

    ``outlook`` is to be kept with the batch, as later ones are scored by it; ``labels`` counts
    realized batches; ``stretch`` is the factor of the interval's log width from earlier scores.
    """

    mse: float
    low: float
    high: float
    outlook: Outlook
    labels: int
    stretch: float


@dataclass(frozen=True)
class _State:
    """Of each scale: log weight (s,), mean (s, 2) and covariance (s, 2, 2) of level and belief."""

    log_weight: FloatArray
    mean: FloatArray
    covariance: FloatArray


def learn(
    raw: Raw, earlier: Sequence[Earlier] = (), scale_prior: Sequence[float] = SCALE_PRIOR
) -> Learned:
    """Return the estimate corrected by earlier batches, which are in the order of time.

    Notes
    -----
    Only ``realized`` of earlier batches is looked at: what becomes known later cannot move it.
    Before any label the estimate is that of ``raw`` and the interval holds the drift of the scales.
    An estimate of 0 stays as it is.

    Examples
    --------
    >>> raw = Raw(1.0, 0.8, 1.25, reference=1.0)
    >>> high_for_long = learn(raw, [Earlier(raw, realized=2.0)] * 8)
    >>> learn(raw).mse, round(high_for_long.mse, 1), high_for_long.labels
    (1.0, 1.8, 8)
    """
    if raw.mse <= 0.0:
        return Learned(raw.mse, raw.low, raw.high, Outlook(0.0, 0.0), 0, 1.0)
    used = [one for one in earlier if one.raw.mse > 0.0]
    state = _start(scale_prior)
    for one in used:
        if one.realized is not None:
            state = _seen(state, one.raw, one.realized)
        state = _step(state)
    outlook = _foretell(state, raw)
    stretch = _stretch(used)
    reach = _Z * outlook.log_sd * stretch
    mse, low, high = np.exp(outlook.log_mean + np.array([0.0, -reach, reach]))
    labels = sum(one.realized is not None for one in used)
    found = Learned(float(mse), float(low), float(high), outlook, labels, stretch)
    return replace(found, mse=raw.mse) if labels == 0 else found


def _start(scale_prior: Sequence[float]) -> _State:
    covariance = np.zeros((len(SCALES), 2, 2))
    covariance[:, 0, 0], covariance[:, 1, 1] = SCALES**2, _BELIEF_SD**2
    return _State(np.log(scale_prior), np.tile([0.0, 1.0], (len(SCALES), 1)), covariance)


def _step(state: _State) -> _State:
    """Let the level move on by a batch: its variance stays that of its scale before labels."""
    kept = np.array([_KEPT, 1.0])
    covariance = state.covariance * np.outer(kept, kept)
    covariance[:, 0, 0] += (1.0 - _KEPT**2) * SCALES**2
    return replace(state, mean=state.mean * kept, covariance=covariance)


def _seen(state: _State, raw: Raw, realized: float) -> _State:
    """Return the state once the realized error of a batch is known."""
    row, offset = _regressor(raw)
    log_error = float(np.clip(_log_ratio(realized, raw.mse), -_MOST_LOG, _MOST_LOG))
    target = log_error + _log_ratio(raw.mse, raw.reference) - offset
    spread = state.covariance @ row
    variance = spread @ row + _variance(raw)
    surprise = target - state.mean @ row
    standard = surprise / np.sqrt(variance)
    tails = (_TAILS + 1) / 2.0 * np.log1p(standard**2 / _TAILS)
    bounded = np.clip(standard, -_OUTLIER_SD, _OUTLIER_SD) * np.sqrt(variance)
    gain = spread / variance[:, None]
    return _State(
        state.log_weight - 0.5 * np.log(variance) - tails,
        state.mean + gain * bounded[:, None],
        state.covariance - gain[:, :, None] * spread[:, None, :],
    )


def _foretell(state: _State, raw: Raw) -> Outlook:
    """Return mean and standard deviation of the mixture of the scales."""
    row, offset = _regressor(raw)
    weight = np.exp(state.log_weight - state.log_weight.max())
    weight /= weight.sum()
    means = state.mean @ row
    mean = float(weight @ means)
    variance = state.covariance @ row @ row + _variance(raw)
    sd = float(np.sqrt(weight @ (variance + (means - mean) ** 2)))
    level = raw.reference if raw.reference > 0.0 else raw.mse
    return Outlook(float(np.log(level)) + mean + offset, sd)


def _stretch(earlier: Sequence[Earlier]) -> float:
    """Return the weighted quantile of earlier scores among scores as of intervals that hold."""
    prior = ndtri(0.5 + 0.5 * (np.arange(_PRIOR_SCORES) + 0.5) / _PRIOR_SCORES) / _Z
    scores, weights = list(prior), [1.0] * _PRIOR_SCORES
    for age, one in enumerate(reversed(earlier)):
        if one.realized is not None and one.outlook is not None:
            missed = abs(_log_ratio(one.realized, float(np.exp(one.outlook.log_mean))))
            scores.append(min(missed, _MOST_LOG) / (_Z * one.outlook.log_sd))
            weights.append(0.5 ** (age / _SCORE_HALF_LIFE))
    if len(scores) == _PRIOR_SCORES:
        return 1.0
    order = np.argsort(scores)
    share = np.cumsum(np.array(weights)[order]) / sum(weights)
    position = min(int(np.searchsorted(share, _SCORE_LEVEL)), len(order) - 1)
    return max(float(scores[order[position]]), _LEAST_STRETCH)


def _regressor(raw: Raw) -> tuple[FloatArray, float]:
    """Return the row of level and belief, and the part of the estimate's move beyond belief."""
    move = _log_ratio(raw.mse, raw.reference)
    believed = float(np.clip(move, -_BELIEVED, _BELIEVED))
    return np.array([1.0, believed]), move - believed


def _variance(raw: Raw) -> float:
    """Return the variance of the log error that the interval of the estimate stands for."""
    return (_log_ratio(raw.high, raw.low) / (2.0 * _Z)) ** 2 + _NOISE


def _log_ratio(value: float, base: float) -> float:
    """Return the logarithm of a ratio, bounded where one of both is 0."""
    if value <= 0.0 or base <= 0.0:
        return -_MOST_LOG if value < base else 0.0
    return float(np.log(value / base))


PERIODS = 8
PERIOD_ROWS = 30

_PERIOD_WEIGHT = (
    0.25  # of a period: neighbouring ones drift together, and the next one lies outside of all
)
_PERIOD_NOISE = 0.05**2


@dataclass(frozen=True)
class PeriodShift:
    """Log of a period's error over what like rows of other periods have, and its variance."""

    log_ratio: float
    variance: float


def period_shifts(x: FloatArray, errors: FloatArray, times: Any) -> tuple[PeriodShift, ...]:
    """Compare each of eight periods of the reference with like rows of the others.

    ``x`` are encoded rows (n, d), ``errors`` squared errors on rows that the model did not see,
    ``times`` numbers or dates. A period has 30 rows at least, so fewer than 60 give none at all.
    """
    order = np.argsort(np.asarray(times), kind="stable")
    n_periods = min(PERIODS, len(order) // PERIOD_ROWS)
    if n_periods < 2:
        return ()
    parts = np.array_split(order, n_periods)
    found = (_shift(x, errors, part, np.setdiff1d(order, part)) for part in parts)
    return tuple(one for one in found if one is not None)


def scale_prior(shifts: Sequence[PeriodShift]) -> tuple[float, ...]:
    """Return the probability of each of ``learning.SCALES`` given the shifts between periods.

    Each period counts a quarter of an observation, so that a calm reference narrows the first
    intervals a little and a restless one widens them much.
    """
    log_weight = np.log(SCALE_PRIOR)
    for one in shifts:
        variance = SCALES**2 + one.variance + _PERIOD_NOISE
        tails = (_TAILS + 1) / 2.0 * np.log1p(one.log_ratio**2 / variance / _TAILS)
        log_weight = log_weight - _PERIOD_WEIGHT * (0.5 * np.log(variance) + tails)
    weight = np.exp(log_weight - log_weight.max())
    return tuple(float(value) for value in weight / weight.sum())


def _shift(
    x: FloatArray, errors: FloatArray, part: np.ndarray[Any, Any], rest: np.ndarray[Any, Any]
) -> PeriodShift | None:
    from trueup.monitoring.panel.importance import neighbour_weights  # a tenth of a second

    weights = neighbour_weights(x[rest], x[part])
    expected, mean = float(weights @ errors[rest] / weights.sum()), float(errors[part].mean())
    if min(expected, mean) <= 0.0:
        return None
    sampling = errors[part].var() / (len(part) * mean**2)
    sampling += errors[rest].var() / (len(rest) * float(errors[rest].mean()) ** 2)
    return PeriodShift(float(np.log(mean / expected)), float(sampling))
