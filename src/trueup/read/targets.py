"""Labels and predictions as arrays, checked, and what is valid in them but should be said."""

from __future__ import annotations

from collections import Counter
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
    LOST_LABEL,
    as_array,
    column,
    floats,
    no_labels,
    plain_numbers,
    reads_as_missing,
    refuse_rows,
)
from trueup.user_warning import warn_user

ROW_SUM_TOLERANCE = 1e-5  # float32 softmax outputs are off by about 1e-7 for each class
SATURATING_LOGIT = {"float32": 16.6, "float16": 7.6}
"""Logit from which a probability of that type is exactly 1."""
_HEAD = 16
_TELLING_ROWS = 50
"""With fewer rows, equal columns and logits in [0, 1] may be chance."""
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
class Notices:
    """What is valid, but should be said once for all rows of a call: sums over its rows."""

    sums: Counter[str] = field(default_factory=Counter)
    equal_range: tuple[float, float] = (np.inf, -np.inf)
    """Of the predictions in blocks where they equal the labels."""
    gain: FloatArray = field(default_factory=lambda: np.zeros(2))
    """What logits gain where they are taken for probabilities, and its square."""

    def look(
        self, y_true: FloatArray, given: FloatArray, weight: FloatArray | None, *, is_logit: bool
    ) -> None:
        """Keep what tells that a column is not what it is said to be; a few rows tell mostly."""
        if len(given) == 0:
            return
        head = given[:_HEAD]
        n = len(given) if weight is None else int(np.count_nonzero(weight))
        self.sums["seen"] += n
        if np.array_equal(head, y_true[:_HEAD]) and np.array_equal(given, y_true):
            self.sums["equal"] += n
            self._widen(float(given.min()), float(given.max()))
        if is_logit and _in_unit(head) and _in_unit(given):
            gains = _gains_as_probabilities(y_true, given)
            self.sums["in unit"] += n
            self.gain += n * np.array([gains.mean(), (gains**2).mean()])

    def _widen(self, low: float, high: float) -> None:
        self.equal_range = min(self.equal_range[0], low), max(self.equal_range[1], high)

    def add(self, other: Notices) -> None:
        """Count the rows of another part of the call."""
        self.sums.update(other.sums)
        self._widen(*other.equal_range)
        self.gain += other.gain

    def warn(self) -> None:
        """Warn the caller of trueup."""
        for dtype, logit in SATURATING_LOGIT.items():
            if n_saturated := self.sums[dtype]:
                warn_user(
                    f"{n_saturated} {dtype} predictions are exactly 1.0: {dtype} probabilities "
                    f"saturate at a logit of {logit}. Pass y_logit, or float64 probabilities."
                )
        if n_clipped := self.sums["clipped"]:
            warn_user(
                f"{n_clipped} predictions are 0 or 1, or closer to it than float64's eps; "
                "the logarithm is clipped at eps."
            )
        if self.sums["seen"] >= _TELLING_ROWS and not _known.get():
            self._warn_of_mistaken_columns(self.sums["seen"])

    def _warn_of_mistaken_columns(self, n: int) -> None:
        low, high = self.equal_range
        if self.sums["equal"] == n and low < high:
            warn_user(
                f"The predictions equal y_true in all {n:,} rows: a column of labels may "
                "have been taken for them. Pass what the model predicted."
            )
        elif self.sums["in unit"] == n and self._are_better_as_probabilities(n):
            warn_user(
                f"All {n:,} values of y_logit are in [0, 1], and fit better as "
                "probabilities. If they are, pass them as y_pred."
            )

    def _are_better_as_probabilities(self, n: int) -> bool:
        """Tell by more than two standard errors: small logits of an early epoch do not fit so."""
        mean, square = self.gain / n
        return bool(mean > 2.0 * np.sqrt(max(square - mean**2, 0.0) / n))


def _in_unit(values: FloatArray) -> bool:
    return float(values.min()) >= 0.0 and float(values.max()) <= 1.0


def _gains_as_probabilities(y_true: FloatArray, logit: FloatArray) -> FloatArray:
    """Return by how much the squared error of each row falls where its logit is a probability.

    Of several classes the sum of the row tells: 1 where it sums to 1, else -1.
    """
    if logit.ndim == 2:
        return np.where(np.abs(logit.sum(axis=1) - 1.0) <= ROW_SUM_TOLERANCE, 1.0, -1.0)
    return np.asarray((y_true - expit(logit)) ** 2 - (y_true - logit) ** 2)


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
        _notice_certain(array, prediction, notices)
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


def _notice_certain(array: NDArray[Any], probability: FloatArray, notices: Notices) -> None:
    """Count the rows that saturate their type, and those at which the logarithm is clipped."""
    if array.dtype.name in SATURATING_LOGIT:
        notices.sums[array.dtype.name] += _n_rows(array == 1.0)
    notices.sums["clipped"] += _n_rows((probability < EPS) | (probability > 1.0 - EPS))


def _n_rows(cells: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(cells.any(axis=1) if cells.ndim == 2 else cells))


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
        raise no_labels(raw)
    values = raw.astype(np.float64, copy=False)
    valid = (values == 0.0) | (values == 1.0)
    if not valid.all():
        fix = "Pass labels=[negative, positive] for other names."
        if values.min() >= 0.0 and values.max() <= 1.0:
            fix = "They look like probabilities: see that y_true is not exchanged with them."
        refuse_rows(~valid, floats(raw, "y_true"), "y_true must be 0 or 1", fix)
    return values


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
