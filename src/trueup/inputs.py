"""From what users have to arrays that were checked: the only place that looks at raw input.

Columns may come from numpy, pandas, polars or torch. Nothing is guessed: what could be read in two
ways is an error that says how to say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.losses import EPS, FloatArray, Loss, SoftmaxLogLoss, get_loss
from trueup.notices import SATURATING_LOGIT, Notices, Place
from trueup.row_hash import row_ids
from trueup.rows import Rows

_ROW_SUM_TOLERANCE = 1e-5  # float32 softmax outputs are off by about 1e-7 for each class


def read_rows(
    y_true: Any,
    y_pred: Any = None,
    *,
    loss: str | Loss,
    y_logit: Any = None,
    labels: Sequence[Any] | None = None,
    row_id: Any = None,
    times: Any = None,
    sample_weight: Any = None,
    place: Place | None = None,
) -> Rows:
    """Check the arguments of ``evaluate`` and bring them into one form.

    With a ``place`` the rows are a block of a larger call: its weights may all be zero, and the
    notices are collected for one warning.

    Raises
    ------
    InvalidInputError
        For a wrong shape, type or range, with the name of the argument and the first bad index.
    UndefinedMetricError
        For no rows at all.
    """
    chosen = get_loss(loss)
    prediction = _read_prediction(y_pred, y_logit)
    if prediction.ndim == 2 and prediction.shape[1] >= 3 and chosen.name == "log_loss":
        chosen = SoftmaxLogLoss()
    raw_labels = column(y_true, "y_true")
    n = len(raw_labels)
    if n == 0:
        raise UndefinedMetricError(
            "y_true must hold at least one row; got 0. Pass the validation rows."
        )
    if len(prediction) != n:
        name = "y_pred" if y_logit is None else "y_logit"
        raise InvalidInputError(
            f"{name} must have as many rows as y_true ({n}); got {len(prediction)}. "
            "Pass the prediction of each row."
        )
    notices = Notices() if place is None else place.notices
    margin = (
        chosen.link(_check_prediction(prediction, chosen, notices))
        if y_logit is None
        else _check_logit(prediction, chosen)
    )
    rows = Rows(
        loss=chosen,
        y_true=_read_labels(raw_labels, chosen, labels, n_classes=_n_columns(prediction)),
        margin=np.ascontiguousarray(margin),
        weight=read_weight(sample_weight, n, may_be_zero=place is not None),
        row_id=_read_ids(row_id, n, 0 if place is None else place.first_row),
        times=None if times is None else _read_times(times, n),
    )
    if place is None:
        notices.warn()
    return rows


def column(values: Any, name: str) -> NDArray[Any]:
    """Return a one-dimensional array from a numpy, pandas, polars or torch column.

    Raises
    ------
    InvalidInputError
        If the values have another number of dimensions; (n, 1) is taken as (n,).
    """
    array = as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name} must be one-dimensional; got shape {array.shape}. Pass one value for each row."
        )
    return array


def read_weight(sample_weight: Any, n: int, *, may_be_zero: bool = False) -> FloatArray | None:
    """Return weights of shape (n,), checked to be finite, not negative and not all zero."""
    if sample_weight is None:
        return None
    weight = _floats(column(sample_weight, "sample_weight"), "sample_weight")
    if len(weight) != n:
        raise InvalidInputError(
            f"sample_weight must have shape ({n},); got {weight.shape}. "
            "Pass one weight for each row."
        )
    _refuse(weight < 0.0, weight, "sample_weight must not be negative", "Drop or fix the weights.")
    if not may_be_zero and not weight.any():
        raise InvalidInputError(
            "sample_weight must hold a positive weight; got zeros only. Drop the argument."
        )
    return weight


def read_probabilities(y_proba: Any) -> FloatArray:
    """Return the probability of the positive class, shape (n,), checked to be in [0, 1]."""
    return _check_binary(_floats(as_array(y_proba, "y_proba"), "y_proba"), "y_proba")


def read_binary_labels(y_true: Any, labels: Sequence[Any] | None = None) -> FloatArray:
    """Return labels as 0.0 and 1.0; two named classes must be given as ``labels``."""
    return _binary_labels(column(y_true, "y_true"), labels)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array from a numpy, pandas, polars or torch object, not copied if possible."""
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a GPU or with a gradient
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    if np.ma.is_masked(values):
        raise InvalidInputError(
            f"{name} must not hold masked values; got some. Drop or fill the rows."
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must have rows of equal length; got a ragged list ({error}). Pass an array."
        ) from None


def _floats(array: NDArray[Any], name: str) -> FloatArray:
    array = _numbers(array)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} must be numbers; got dtype {array.dtype}. Convert the column to floats."
        )
    floats = array.astype(np.float64, copy=False)
    if array.dtype.kind not in "iub" and not _all_finite(floats):
        _refuse(~np.isfinite(floats), floats, f"{name} must be finite", "Drop or fix the row.")
    return floats


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Turn a column of objects into floats if all are Decimal, Fraction, Python numbers, bools."""
    plain = array.dtype.kind == "O" and all(isinstance(v, Number | np.bool_) for v in array.flat)
    return array.astype(np.float64) if plain else array


def _all_finite(floats: FloatArray) -> bool:
    """Tell by the extremes, which cost less than a mask of all values; NaN is passed on by both."""
    return floats.size == 0 or bool(np.isfinite(floats.min()) and np.isfinite(floats.max()))


def _refuse(bad: NDArray[np.bool_], values: NDArray[Any], rule: str, fix: str) -> None:
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = index[0] if len(index) == 1 else index
        raise InvalidInputError(f"{rule}; got {values[index]} at index {where}. {fix}")


def _read_prediction(y_pred: Any, y_logit: Any) -> NDArray[Any]:
    if (y_pred is None) == (y_logit is None):
        got = "neither" if y_pred is None else "both"
        raise InvalidInputError(
            f"y_pred must be given, or y_logit in its place; got {got}. "
            "Pass exactly one of the two."
        )
    name, values = ("y_pred", y_pred) if y_logit is None else ("y_logit", y_logit)
    array = as_array(values, name)
    if array.ndim not in (1, 2):
        raise InvalidInputError(
            f"{name} must have one or two dimensions; got shape {array.shape}. "
            "Pass one row of predictions for each row."
        )
    return array


def _notice_saturation(array: NDArray[Any], notices: Notices) -> None:
    if array.dtype in SATURATING_LOGIT and array.max() == 1.0:
        at_one = (array == 1.0).any(axis=1) if array.ndim == 2 else array == 1.0
        notices.add(Notices(int(at_one.sum()), array.dtype))


def _check_prediction(array: NDArray[Any], loss: Loss, notices: Notices) -> FloatArray:
    if loss.task == "binary" and _are_certainly_probabilities(array):
        return array.astype(np.float64, copy=False)
    prediction = _floats(array, "y_pred")
    if loss.task in ("binary", "multiclass"):
        check = _check_binary if loss.task == "binary" else _check_row_sums
        prediction = check(prediction, "y_pred")
        _notice_saturation(array, notices)
        _notice_clipping(prediction, notices)
        return prediction
    prediction = column(prediction, "y_pred")
    if loss.task == "counts":
        _refuse(
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
        _refuse(outside, probability, f"{name} must be in [0, 1]", fix)


def _check_row_sums(probability: FloatArray, name: str) -> FloatArray:
    _refuse_outside_unit(probability, name, "logits")
    total = probability.sum(axis=1)
    _refuse(
        np.abs(total - 1.0) > _ROW_SUM_TOLERANCE,
        total,
        f"{name} must sum to 1 in each row",
        "Normalise the rows, or pass logits as y_logit.",
    )
    return probability


def _notice_clipping(probability: FloatArray, notices: Notices) -> None:
    if probability.min() < EPS or probability.max() > 1.0 - EPS:
        certain = (probability < EPS) | (probability > 1.0 - EPS)
        rows = certain.any(axis=1) if certain.ndim == 2 else certain
        notices.add(Notices(n_clipped=int(np.count_nonzero(rows))))


def _check_logit(array: NDArray[Any], loss: Loss) -> FloatArray:
    logit = _floats(array, "y_logit")
    if loss.task == "multiclass":
        return logit
    if loss.task == "binary" and logit.ndim == 2 and logit.shape[1] == 2:
        return np.asarray(logit[:, 1] - logit[:, 0])
    if loss.task == "binary":
        return column(logit, "y_logit")
    raise InvalidInputError(
        f"y_logit must go with a loss of probabilities; got loss {loss.name!r}. Pass y_pred."
    )


def _n_columns(prediction: NDArray[Any]) -> int:
    return prediction.shape[1] if prediction.ndim == 2 else 1


def _read_labels(
    raw: NDArray[Any], loss: Loss, labels: Sequence[Any] | None, n_classes: int
) -> FloatArray:
    if loss.task == "binary":
        return _binary_labels(raw, labels)
    if loss.task == "multiclass":
        return _class_indices(raw, labels, n_classes)
    if labels is not None:
        raise InvalidInputError(
            f"labels must be left out with loss {loss.name!r}; got {list(labels)!r}. "
            "Drop the argument."
        )
    target = _floats(raw, "y_true")
    if loss.task == "counts":
        _refuse(target < 0.0, target, "y_true must not be negative", "Pass counts.")
    return target


def _binary_labels(raw: NDArray[Any], labels: Sequence[Any] | None) -> FloatArray:
    if labels is not None:
        if len(labels) != 2:
            raise InvalidInputError(
                f"labels must name two classes, the positive one last; got {list(labels)!r}. "
                "Pass [negative, positive]."
            )
        return _class_indices(raw, labels, 2)
    raw = _numbers(raw)
    if raw.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"y_true must be 0 and 1, or labels must name the classes; got dtype {raw.dtype}. "
            "Pass labels=[negative, positive]."
        )
    floats = raw.astype(np.float64, copy=False)
    valid = (floats == 0.0) | (floats == 1.0)
    if not valid.all():
        fix = "Pass labels=[negative, positive] for other names."
        _refuse(~valid, _floats(raw, "y_true"), "y_true must be 0 or 1", fix)
    return floats


def _class_indices(raw: NDArray[Any], labels: Sequence[Any] | None, n_classes: int) -> FloatArray:
    try:
        names = np.unique(raw) if labels is None else np.asarray(labels)
        order = np.argsort(names)
        position = np.searchsorted(names, raw, sorter=order)
    except TypeError:
        raise InvalidInputError(
            "y_true must hold labels of one type without missing ones; "
            f"got dtype {raw.dtype}. Drop or fix the rows."
        ) from None
    if len(names) != n_classes or len(np.unique(names)) != n_classes:
        source = "distinct values of y_true" if labels is None else "labels"
        raise InvalidInputError(
            f"{source} must be as many as the columns of predictions ({n_classes}); "
            f"got {len(names)}. "
            "Pass labels= with each class once, in the order of the columns."
        )
    index = order[np.clip(position, 0, n_classes - 1)]
    _refuse(names[index] != raw, raw, f"y_true must be one of {names.tolist()}", "Fix labels=.")
    return index.astype(np.float64)


def _read_ids(row_id: Any, n: int, first_row: int) -> UInt64Array:
    if row_id is None:
        return row_ids(None, n) + np.uint64(first_row)
    return row_ids(column(row_id, "row_id"), n)


def _read_times(times: Any, n: int) -> NDArray[Any]:
    array = column(times, "times")
    if array.dtype.kind not in "fiuM":
        raise InvalidInputError(
            f"times must be numbers or datetimes; got dtype {array.dtype}. Convert the column."
        )
    if len(array) != n:
        raise InvalidInputError(
            f"times must have shape ({n},); got {array.shape}. Pass one time for each row."
        )
    missing = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    _refuse(missing, array, "times must not be missing", "Drop or fix the row.")
    return array


def require_fields(fields: Any, loss: Loss) -> None:
    """Refuse fields that are no mapping, or that go with a loss without probabilities."""
    if not hasattr(fields, "items"):
        raise InvalidInputError(
            f"fields must be a mapping of name to column; got {type(fields).__name__}. "
            "Pass a dict or a data frame."
        )
    if loss.task != "binary":
        raise InvalidInputError(
            f"fields must go with a loss of binary probabilities; got loss {loss.name!r}. "
            "Drop fields."
        )
