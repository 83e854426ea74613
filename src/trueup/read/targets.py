"""Labels and predictions as arrays, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import EPS, FloatArray, Loss
from trueup.read.columns import (
    as_array,
    column,
    floats,
    plain_numbers,
    reads_as_missing,
    refuse_rows,
    shown,
)

LOST_LABEL = "It looks like a missing label: drop its row, or fill it."
_ZERO_OR_ONE = frozenset({"0", "1", "0.0", "1.0", "true", "false"})
ROW_SUM_TOLERANCE = 1e-5  # float32 softmax outputs are off by about 1e-7 for each class
SATURATING_LOGIT = {"float32": 16.6, "float16": 7.6}
"""Logit from which a probability of that type is exactly 1."""


def read_prediction(y_pred: Any, y_logit: Any) -> NDArray[Any]:
    """Return the array that was given, of one or two dimensions."""
    if (y_pred is None) == (y_logit is None):
        got = "neither" if y_pred is None else "both"
        raise InvalidInputError(
            "y_pred must be given, or y_logit in its place",
            got,
            "Pass exactly one of the two.",
        )
    name, values = ("y_pred", y_pred) if y_logit is None else ("y_logit", y_logit)
    array = as_array(values, name)
    if array.ndim not in (1, 2):
        raise InvalidInputError(
            f"{name} must have one or two dimensions",
            f"shape {array.shape}",
            "Pass one row of predictions for each row.",
        )
    return array


def n_columns(prediction: NDArray[Any]) -> int:
    """Return the number of columns, 1 for a one-dimensional array."""
    return prediction.shape[1] if prediction.ndim == 2 else 1


def read_probabilities(y_proba: Any) -> FloatArray:
    """Return the probability of the positive class, shape (n,), checked to be in [0, 1]."""
    return _check_binary(floats(as_array(y_proba, "y_proba"), "y_proba"), "y_proba")


def check_prediction(array: NDArray[Any], loss: Loss, certain: Counter[str]) -> FloatArray:
    """Return probabilities, targets or rates as float64, checked for their range.

    Those that are as good as certain are valid, and counted by what becomes of them.
    """
    if loss.task == "binary" and _are_certainly_probabilities(array):
        return array.astype(np.float64, copy=False)
    prediction = floats(array, "y_pred", UnscorableInputError)
    if loss.task in ("binary", "multiclass"):
        check = _check_binary if loss.task == "binary" else _check_row_sums
        prediction = check(prediction, "y_pred")
        _count_certain(array, prediction, certain)
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


def _count_certain(array: NDArray[Any], probability: FloatArray, certain: Counter[str]) -> None:
    """Count the rows that saturate their type, and those at which the logarithm is clipped."""
    if array.dtype.name in SATURATING_LOGIT:
        certain[array.dtype.name] += _n_rows(array == 1.0)
    certain["clipped"] += _n_rows((probability < EPS) | (probability > 1.0 - EPS))


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
        raise _no_labels(raw)
    values = raw.astype(np.float64, copy=False)
    valid = (values == 0.0) | (values == 1.0)
    if not valid.all():
        fix = "Pass labels=[negative, positive] for other names."
        if values.min() >= 0.0 and values.max() <= 1.0:
            fix = "They look like probabilities: see that y_true is not exchanged with them."
        refuse_rows(~valid, floats(raw, "y_true"), "y_true must be 0 or 1", fix)
    return values


def _no_labels(raw: NDArray[Any]) -> InvalidInputError:
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
    got = f"dtype {raw.dtype}, which holds {names[:80]}"
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
