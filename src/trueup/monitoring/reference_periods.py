"""What the periods of the reference say of the drift to come, before any label of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.learning import SCALE_PRIOR, SCALES
from trueup.monitoring.panel.importance import neighbour_weights

PERIODS = 8
PERIOD_ROWS = 30

_WEIGHT = (
    0.25  # of a period: neighbouring ones drift together, and the next one lies outside of all
)
_NOISE = 0.05**2
_TAILS = 4


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
        variance = SCALES**2 + one.variance + _NOISE
        tails = (_TAILS + 1) / 2.0 * np.log1p(one.log_ratio**2 / variance / _TAILS)
        log_weight = log_weight - _WEIGHT * (0.5 * np.log(variance) + tails)
    weight = np.exp(log_weight - log_weight.max())
    return tuple(float(value) for value in weight / weight.sum())


def _shift(
    x: FloatArray, errors: FloatArray, part: np.ndarray[Any, Any], rest: np.ndarray[Any, Any]
) -> PeriodShift | None:
    weights = neighbour_weights(x[rest], x[part])
    expected, mean = float(weights @ errors[rest] / weights.sum()), float(errors[part].mean())
    if min(expected, mean) <= 0.0:
        return None
    sampling = errors[part].var() / (len(part) * mean**2)
    sampling += errors[rest].var() / (len(rest) * float(errors[rest].mean()) ** 2)
    return PeriodShift(float(np.log(mean / expected)), float(sampling))
