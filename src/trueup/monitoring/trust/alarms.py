"""Whether an estimate may be acted on: signs of a broken batch, support, and the record so far.

A batch of another time nearly always differs from the reference; alarms are signs of a broken
source: absurd values, stuck features, predictions of another range. Everything is compared with a
profile of the reference.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from trueup.monitoring.inputs import FloatArray, numeric_columns
from trueup.monitoring.learning import Learned
from trueup.monitoring.result import MSEEstimate
from trueup.monitoring.trust.support import OUTSIDE

MIN_ROWS = 20

_ABSURD_RANGES = 4.0  # a value this many ranges of the reference outside of them
_SENTINEL_RANGES = 0.75  # less far, but the very same number in many rows: -999 for "missing"
_SENTINEL_SHARE = 0.05
_STUCK_SHARE = 0.95  # of a batch that has one value
_VARIED_SHARE = 0.3  # of the reference that has its commonest value, at most, in a varied feature
_VARIED_VALUES = 32  # hours, weekdays, days of the month are constant in many an honest batch
_PREDICTIONS_OUTSIDE = 0.3  # at least


@dataclass(frozen=True)
class NumberProfile:
    """Range of a number in the reference, and whether it varies from row to row there."""

    low: float
    high: float
    varied: bool


@dataclass(frozen=True)
class ReferenceProfile:
    """What the alarms know of the reference: its numeric features, and the model's predictions."""

    numbers: dict[str, NumberProfile]
    prediction: NumberProfile

    @classmethod
    def of(cls, features: Any, y_pred: FloatArray) -> ReferenceProfile:
        """Describe features (array or data frame) and predictions of the reference."""
        columns = numeric_columns(features).items()
        numbers = {name: _profile(values) for name, values in columns if len(values)}
        return cls(numbers, _profile(y_pred))

    def alarms(self, features: Any, y_pred: FloatArray) -> tuple[str, ...]:
        """Return what is wrong with a batch, in words; nothing of what time alone does."""
        columns = numeric_columns(features)
        found = []
        for name, profile in self.numbers.items():
            found += _absurd(name, profile, columns.get(name, np.zeros(0)))
            found += _stuck(name, profile, columns.get(name, np.zeros(0)))
            found += _sentinel(name, profile, columns.get(name, np.zeros(0)))
        return (*found, *self._predictions(y_pred))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ReferenceProfile:
        numbers = {name: NumberProfile(**entry) for name, entry in values["numbers"].items()}
        return cls(numbers, NumberProfile(**values["prediction"]))

    def _predictions(self, y_pred: FloatArray) -> list[str]:
        known = self.prediction
        outside = float(((y_pred < known.low) | (y_pred > known.high)).mean())
        found = _stuck("prediction", known, y_pred)
        found += _absurd("prediction", known, y_pred)
        if not found and outside >= _PREDICTIONS_OUTSIDE:
            found.append(
                f"{outside:.0%} of the predictions lie outside of those for the reference, "
                f"{known.low:.4g} to {known.high:.4g}"
            )
        return found


def _profile(values: FloatArray) -> NumberProfile:
    distinct, counts = np.unique(values, return_counts=True)
    varied = len(distinct) >= _VARIED_VALUES and counts.max() <= _VARIED_SHARE * len(values)
    return NumberProfile(float(distinct[0]), float(distinct[-1]), bool(varied))


def _absurd(name: str, known: NumberProfile, values: FloatArray) -> list[str]:
    """Say which value lies many ranges of the reference outside of it."""
    margin = _ABSURD_RANGES * (known.high - known.low)
    if margin <= 0.0:  # a constant of the reference has no scale
        return []
    absurd = (values < known.low - margin) | (values > known.high + margin)
    if not absurd.any():
        return []
    worst = values[np.argmax(np.maximum(known.low - values, values - known.high))]
    rows = "1 row" if absurd.sum() == 1 else f"{absurd.sum()} rows"
    return [
        f"{_what(name)} is absurd in {rows}: {worst:.6g}, where the reference has "
        f"{known.low:.4g} to {known.high:.4g}"
    ]


def _sentinel(name: str, known: NumberProfile, values: FloatArray) -> list[str]:
    """Say which number outside of the reference stands in many rows, where numbers vary."""
    span = known.high - known.low
    away = np.maximum(known.low - values, values - known.high)
    apart = values[(away > _SENTINEL_RANGES * span) & (away <= _ABSURD_RANGES * span)]
    if not known.varied or len(values) < MIN_ROWS or not len(apart):
        return []
    distinct, counts = np.unique(apart, return_counts=True)
    share = counts.max() / len(values)
    if not _SENTINEL_SHARE <= share < _STUCK_SHARE:
        return []
    return [
        f"{_what(name)} is {distinct[np.argmax(counts)]:.6g} in {share:.0%} of the rows, which the "
        f"reference never has: it has {known.low:.4g} to {known.high:.4g}. A code for missing?"
    ]


def _stuck(name: str, known: NumberProfile, values: FloatArray) -> list[str]:
    if not known.varied or len(values) < MIN_ROWS:
        return []
    distinct, counts = np.unique(values, return_counts=True)
    share = counts.max() / len(values)
    if share < _STUCK_SHARE:
        return []
    value = distinct[np.argmax(counts)]
    return [f"{_what(name)} is stuck at {value:.6g} in {share:.0%} of the rows, and varied before"]


def _what(name: str) -> str:
    return name if name == "prediction" else f"column {name!r}"


ENOUGH_LABELS = 5
"""Realized batches from which on their record counts for more than the support does."""

_OUTSIDE_LIMIT = 0.3
_TOO_WIDE = 0.8  # of the log, stretched: a 90% interval from a quarter to four times the estimate


def with_trust(
    estimate: MSEEstimate, learned: Learned, alarms: tuple[str, ...] = ()
) -> MSEEstimate:
    """Return the learned estimate with the verdict whether it is to be trusted.

    Notes
    -----
    Not trusted are batches with an alarm; those outside of the reference, as long as no realized
    batch says how estimates fare; from five realized ones on, those whose learned interval says
    nothing; and between, those of which both is true. That a classifier tells the batch from the
    reference is no sign by itself: it does so for nearly every batch of another time.
    """
    doubts = [*_lasting(estimate), *_doubts(estimate, learned, alarms)]
    return replace(
        estimate,
        mse=learned.mse,
        low=learned.low,
        high=learned.high,
        trusted=not doubts,
        reasons=tuple(dict.fromkeys([*doubts, *estimate.reasons])),
    )


def _doubts(estimate: MSEEstimate, learned: Learned, alarms: tuple[str, ...]) -> list[str]:
    """Return what support, record and alarms say, as far as the number of labels lets them."""
    support, signs = _of_support(estimate), [*_of_record(learned), *alarms]
    if learned.labels >= ENOUGH_LABELS:
        return signs
    if learned.labels == 0:
        return [*support, *alarms]
    return [*support, *signs] if support and signs else [*alarms]


def _lasting(estimate: MSEEstimate) -> list[str]:
    """Return why an estimate is not to be trusted whatever earlier batches say."""
    if estimate.trusted or _is_outside(estimate):
        return []
    return [estimate.reasons[0]]


def _is_outside(estimate: MSEEstimate) -> bool:
    return bool(estimate.reasons) and estimate.reasons[0].startswith(OUTSIDE)


def _of_support(estimate: MSEEstimate) -> list[str]:
    if _is_outside(estimate):
        return [estimate.reasons[0]]
    share = estimate.diagnostics.get("outside", 0.0)
    if estimate.trusted and share > _OUTSIDE_LIMIT:
        return [f"{OUTSIDE}: {share:.0%} of the rows have no neighbours in it"]
    return []


def _of_record(learned: Learned) -> list[str]:
    spread = learned.outlook.log_sd * learned.stretch
    if spread <= _TOO_WIDE:
        return []
    batches = "1 batch" if learned.labels == 1 else f"{learned.labels} batches"
    return [
        f"the interval spans a factor of {_factor(learned.high / learned.low)}: after {batches} "
        f"with labels an estimate may be off by a factor of {_factor(np.exp(spread))} or so"
    ]


def _factor(value: float) -> str:
    return format(value, ",.0f" if 10.0 <= value < 1e7 else ".2g")
