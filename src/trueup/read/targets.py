"""Labels and predictions as arrays, checked, and what is valid in them but should be said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import EPS, FloatArray, Loss
from trueup.losses.elementary import expit
from trueup.read.columns import (
    as_array,
    column,
    floats,
    plain_numbers,
    reads_as_missing,
    refuse_rows,
    shown,
)
from trueup.read.ids import FewIds
from trueup.user_warning import warn_user

LOST_LABEL = "It looks like a missing label: drop its row, or fill it."
_ZERO_OR_ONE = frozenset({"0", "1", "0.0", "1.0", "true", "false"})
_LONGEST_LIST = 80
ROW_SUM_TOLERANCE = 1e-5  # float32 softmax outputs are off by about 1e-7 for each class
SATURATING_LOGIT = {np.dtype(np.float32): 16.6, np.dtype(np.float16): 7.6}
"""Logit from which a probability of that type is exactly 1."""
_HEAD = 16
_TELLING_ROWS = 50
"""With fewer rows, equal columns and logits in [0, 1] may be chance."""
_PERCENT_TOLERANCE = 0.02
"""Percentages are written with few digits."""
_LARGE_LOGIT = 5.0
"""Logits none of which is below 0 or beyond this may be of an early epoch, and no percentages."""
_known: ContextVar[bool] = ContextVar("columns_are_known", default=False)


@contextmanager
def columns_are_known() -> Iterator[None]:
    """Doubt no column that a framework has named: the logits of a first epoch may be in [0, 1]."""
    before = _known.set(True)
    try:
        yield
    finally:
        _known.reset(before)


@dataclass
class _Gain:
    """By how much logits fit better as probabilities times ``scale``, over rows that may be these.

    The squared error tells; of several classes the sum of a row: 1 where it is that of
    probabilities, else -1.
    """

    scale: float
    n: int = 0
    largest: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def look(self, y_true: FloatArray, logit: FloatArray, n: int) -> None:
        """Add n rows, if all of their logits are from 0 to ``scale``."""
        if logit.min() < 0.0 or logit.max() > self.scale:
            return
        share = logit / self.scale
        if logit.ndim == 2:
            tolerance = ROW_SUM_TOLERANCE if self.scale == 1.0 else _PERCENT_TOLERANCE
            gains = np.where(np.abs(share.sum(axis=1) - 1.0) <= tolerance, 1.0, -1.0)
        else:
            gains = np.asarray((y_true - expit(logit)) ** 2 - (y_true - share) ** 2)
        mean, square = float(gains.mean()), float((gains**2).mean())
        self.add(_Gain(self.scale, n, float(logit.max()), mean * n, square * n))

    def add(self, other: _Gain) -> None:
        """Add the rows of another part of the call."""
        self.n += other.n
        self.largest = max(self.largest, other.largest)
        self.total += other.total
        self.squares += other.squares

    def is_clear(self, n: int) -> bool:
        """Tell whether all n rows were added, and gain by more than two standard errors.

        Small logits of an early epoch do not.
        """
        if self.n != n:
            return False
        mean = self.total / n
        variance = max(self.squares / n - mean**2, 0.0)
        return mean > 2.0 * float(np.sqrt(variance / n))


@dataclass
class Notices:
    """What is valid, but should be said once for all rows of a call."""

    n_saturated: int = 0
    saturated_dtype: np.dtype[Any] | None = None
    n_clipped: int = 0
    n_seen: int = 0
    n_equal: int = 0
    equal_range: tuple[float, float] = (np.inf, -np.inf)
    as_shares: _Gain = field(default_factory=lambda: _Gain(1.0))
    as_percentages: _Gain = field(default_factory=lambda: _Gain(100.0))
    ids: FewIds | None = None

    def look(
        self, y_true: FloatArray, given: FloatArray, weight: FloatArray | None, *, is_logit: bool
    ) -> None:
        """Keep what tells that a column is not what it is said to be; a few rows tell mostly."""
        if len(given) == 0:
            return
        head = given[:_HEAD]
        n = len(given) if weight is None else int(np.count_nonzero(weight))
        self.n_seen += n
        if np.array_equal(head, y_true[:_HEAD]) and np.array_equal(given, y_true):
            self.n_equal += n
            self._widen(float(given.min()), float(given.max()))
        if is_logit and head.min() >= 0.0:
            self.as_shares.look(y_true, given, n)
            self.as_percentages.look(y_true, given, n)

    def _widen(self, low: float, high: float) -> None:
        self.equal_range = min(self.equal_range[0], low), max(self.equal_range[1], high)

    def add(self, other: Notices) -> None:
        """Count the rows of another part of the call."""
        self.n_saturated += other.n_saturated
        self.saturated_dtype = self.saturated_dtype or other.saturated_dtype
        self.n_clipped += other.n_clipped
        self.n_seen += other.n_seen
        self.n_equal += other.n_equal
        self._widen(*other.equal_range)
        self.as_shares.add(other.as_shares)
        self.as_percentages.add(other.as_percentages)
        if other.ids is not None:
            self.ids = self.ids or FewIds()
            self.ids.add(other.ids)

    def warn(self) -> None:
        """Warn the caller of trueup."""
        if self.saturated_dtype is not None:
            dtype = self.saturated_dtype
            warn_user(
                f"{self.n_saturated} {dtype} predictions are exactly 1.0: {dtype} probabilities "
                f"saturate at a logit of {SATURATING_LOGIT[dtype]}. "
                "Pass y_logit, or float64 probabilities.",
            )
        if self.n_clipped:
            warn_user(
                f"{self.n_clipped} predictions are 0 or 1, or closer to it than float64's eps; "
                "the logarithm is clipped at eps.",
            )
        if self.ids is not None:
            self.ids.warn()
        if self.n_seen >= _TELLING_ROWS and not _known.get():
            self._warn_of_mistaken_columns()

    def _warn_of_mistaken_columns(self) -> None:
        low, high = self.equal_range
        if self.n_equal == self.n_seen and low < high:
            warn_user(
                f"The predictions equal y_true in all {self.n_seen:,} rows: a column of labels may "
                "have been taken for them. Pass what the model predicted."
            )
        elif self.as_shares.is_clear(self.n_seen):
            warn_user(
                f"All {self.n_seen:,} values of y_logit are in [0, 1], and fit better as "
                "probabilities. If they are, pass them as y_pred."
            )
        elif self.as_percentages.largest > _LARGE_LOGIT and self.as_percentages.is_clear(
            self.n_seen
        ):
            warn_user(
                f"All {self.n_seen:,} values of y_logit are in [0, 100], and fit better as "
                "percentages. If they are, divide by 100 and pass them as y_pred."
            )


@dataclass(frozen=True)
class Place:
    """Where a block of rows lies among the rows of one call, and the notices of that call."""

    first_row: int
    notices: Notices


def read_probabilities(y_proba: Any) -> FloatArray:
    """Return the probability of the positive class, shape (n,), checked to be in [0, 1]."""
    return _check_binary(floats(as_array(y_proba, "y_proba"), "y_proba"), "y_proba")


def check_prediction(array: NDArray[Any], loss: Loss, notices: Notices) -> FloatArray:
    """Return probabilities, targets or rates as float64, checked for their range."""
    if loss.task == "binary" and _are_certainly_probabilities(array):
        return array.astype(np.float64, copy=False)
    prediction = floats(array, "y_pred", UnscorableInputError)
    if loss.task in ("binary", "multiclass"):
        check = _check_binary if loss.task == "binary" else _check_row_sums
        prediction = check(prediction, "y_pred")
        _notice_saturation(array, notices)
        _notice_clipping(prediction, notices)
        return prediction
    prediction = column(prediction, "y_pred")
    if loss.task in ("counts", "positive"):
        refuse_rows(
            prediction <= 0.0, prediction, "y_pred must be positive", "Predict a positive rate."
        )
    return prediction


def _are_certainly_probabilities(array: NDArray[Any]) -> bool:
    """Tell by the extremes alone that there is nothing to refuse or to notice; NaN fails too."""
    if array.ndim != 1 or array.dtype.kind != "f":
        return False
    return float(array.min()) >= EPS and float(array.max()) <= 1.0 - EPS


def _check_binary(probability: FloatArray, name: str) -> FloatArray:
    if probability.ndim == 2 and probability.shape[1] == 2:
        return _check_row_sums(probability, name)[:, 1]
    probability = column(probability, name)
    _refuse_outside_unit(probability, name, "log-odds")
    return probability


def _refuse_outside_unit(probability: FloatArray, name: str, scale: str) -> None:
    if probability.size and (probability.min() < 0.0 or probability.max() > 1.0):
        outside = (probability < 0.0) | (probability > 1.0)
        fix = f"Pass probabilities, or {scale} as y_logit."
        if probability.min() >= 0.0 and 2.0 < probability.max() <= 100.0:
            fix = f"They look like percentages: divide by 100. {fix}"
        refuse_rows(outside, probability, f"{name} must be in [0, 1]", fix)


def _check_row_sums(probability: FloatArray, name: str) -> FloatArray:
    _refuse_outside_unit(probability, name, "logits")
    total = probability.sum(axis=1)
    refuse_rows(
        np.abs(total - 1.0) > ROW_SUM_TOLERANCE,
        total,
        f"{name} must sum to 1 in each row",
        "Normalise the rows, or pass logits as y_logit.",
    )
    return probability


def _notice_saturation(array: NDArray[Any], notices: Notices) -> None:
    if array.dtype in SATURATING_LOGIT and array.max() == 1.0:
        at_one = (array == 1.0).any(axis=1) if array.ndim == 2 else array == 1.0
        notices.add(Notices(int(at_one.sum()), array.dtype))


def _notice_clipping(probability: FloatArray, notices: Notices) -> None:
    if probability.min() < EPS or probability.max() > 1.0 - EPS:
        certain = (probability < EPS) | (probability > 1.0 - EPS)
        rows = certain.any(axis=1) if certain.ndim == 2 else certain
        notices.add(Notices(n_clipped=int(np.count_nonzero(rows))))


def check_logit(array: NDArray[Any], loss: Loss) -> FloatArray:
    """Return finite logits as float64; of two columns, their difference."""
    logit = floats(array, "y_logit", UnscorableInputError)
    if loss.task == "multiclass":
        return logit
    if loss.task == "binary" and logit.ndim == 2 and logit.shape[1] == 2:
        return np.asarray(logit[:, 1] - logit[:, 0])
    if loss.task == "binary":
        return column(logit, "y_logit")
    raise InvalidInputError(
        "y_logit must go with a loss of probabilities", f"loss {loss.name!r}", "Pass y_pred."
    )


def read_binary_labels(y_true: Any, labels: Sequence[Any] | None = None) -> FloatArray:
    """Return labels as 0.0 and 1.0; two named classes must be given as ``labels``."""
    return _binary_labels(column(y_true, "y_true"), labels)


def read_labels(
    raw: NDArray[Any], loss: Loss, labels: Sequence[Any] | None, n_classes: int
) -> FloatArray:
    """Return labels as 0.0 and 1.0, class indices, targets or counts, by the task of the loss."""
    if labels is not None and np.ndim(np.asarray(labels, dtype=object)) != 1:
        raise InvalidInputError(
            "labels must be a list of the classes", repr(labels), "Pass [negative, positive]."
        )
    if loss.task == "binary":
        return _binary_labels(raw, labels)
    if loss.task == "multiclass":
        return _class_indices(raw, labels, n_classes)
    if labels is not None:
        raise InvalidInputError(
            f"labels must be left out with loss {loss.name!r}",
            repr(list(labels)),
            "Drop the argument.",
        )
    target = floats(raw, "y_true")
    if loss.task == "counts":
        refuse_rows(target < 0.0, target, "y_true must not be negative", "Pass counts.")
    if loss.task == "positive":
        fix = "Leave out the rows, or use tweedie_deviance."
        refuse_rows(target <= 0.0, target, "y_true must be positive", fix)
    return target


def _binary_labels(raw: NDArray[Any], labels: Sequence[Any] | None) -> FloatArray:
    if labels is not None:
        if len(labels) != 2:
            raise InvalidInputError(
                "labels must name two classes, the positive one last",
                repr(list(labels)),
                "Pass [negative, positive].",
            )
        return _class_indices(raw, labels, 2)
    raw = plain_numbers(raw)
    if raw.dtype.kind not in "fiub":
        raise _named_classes(raw)
    values = raw.astype(np.float64, copy=False)
    valid = (values == 0.0) | (values == 1.0)
    if not valid.all():
        fix = "Pass labels=[negative, positive] for other names."
        if values.min() >= 0.0 and values.max() <= 1.0:
            fix = "They look like probabilities: see that y_true is not exchanged with them."
        refuse_rows(~valid, floats(raw, "y_true"), "y_true must be 0 or 1", fix)
    return values


def _named_classes(raw: NDArray[Any]) -> InvalidInputError:
    """Return the refusal of labels that are no numbers: missing ones, a stray one, or names."""
    rule = "y_true must be 0 and 1, or labels must name the classes"
    values = [str(value).strip() for value in raw.tolist()]
    lost = next((i for i, value in enumerate(values) if reads_as_missing(value)), None)
    stray = next((i for i, value in enumerate(values) if value.lower() not in _ZERO_OR_ONE), None)
    if lost is not None:
        fix = f"{LOST_LABEL} If it is a class, pass labels=[negative, positive]."
        return InvalidInputError(rule, f"{shown(raw[lost])} at index {lost}", fix)
    if stray is not None and not _ZERO_OR_ONE.isdisjoint(value.lower() for value in values):
        fix = "Correct the label or drop its row. Pass labels=[negative, positive] for other names."
        return InvalidInputError(rule, f"{shown(raw[stray])} at index {stray}", fix)
    names = ", ".join(map(shown, dict.fromkeys(values[:1_000])))
    got = f"dtype {raw.dtype}, which holds {names[:_LONGEST_LIST]}"
    return InvalidInputError(rule, got, "Pass labels=[negative, positive].")


def _class_indices(raw: NDArray[Any], labels: Sequence[Any] | None, n_classes: int) -> FloatArray:
    try:
        names = np.unique(raw) if labels is None else np.asarray(labels)
        order = np.argsort(names)
        position = np.searchsorted(names, raw, sorter=order)
    except TypeError:
        raise InvalidInputError(
            "y_true must hold labels of one type without missing ones",
            f"dtype {raw.dtype}",
            "Drop or fix the rows.",
        ) from None
    if len(names) != n_classes or len(np.unique(names)) != n_classes:
        source = "distinct values of y_true" if labels is None else "labels"
        raise InvalidInputError(
            f"{source} must be as many as the columns of predictions ({n_classes})",
            f"{len(names)}",
            (
                "Pass labels= with each class once, in the order of the columns; predictions of "
                "two classes may be one-dimensional."
            ),
        )
    index = order[np.clip(position, 0, n_classes - 1)]
    unknown = names[index] != raw
    lost = unknown.any() and reads_as_missing(raw[unknown][0])
    fix = f"{LOST_LABEL} Else fix labels=." if lost else "Fix labels=."
    refuse_rows(unknown, raw, f"y_true must be one of {names.tolist()}", fix)
    return index.astype(np.float64)
