"""Predictions as arrays, checked: probabilities, logits, predicted targets and rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import EPS, FloatArray, Loss
from trueup.read.columns import as_array, column, floats, refuse_rows
from trueup.read.notices import SATURATING_LOGIT, Notices

ROW_SUM_TOLERANCE = 1e-5  # float32 softmax outputs are off by about 1e-7 for each class


def read_probabilities(y_proba: Any) -> FloatArray:
    """Return the probability of the positive class, shape (n,), checked to be in [0, 1]."""
    return _check_binary(floats(as_array(y_proba, "y_proba"), "y_proba"), "y_proba")


def read_prediction(y_pred: Any, y_logit: Any) -> NDArray[Any]:
    """Return the array that was given, of one or two dimensions."""
    if (y_pred is None) == (y_logit is None):
        got = "neither" if y_pred is None else "both"
        raise InvalidInputError(
            "y_pred must be given, or y_logit in its place",
            str(got),
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


def n_columns(prediction: NDArray[Any]) -> int:
    """Return the number of columns, 1 for a one-dimensional array."""
    return prediction.shape[1] if prediction.ndim == 2 else 1
