"""Labels as arrays of floats, checked: 0 and 1, class indices, targets and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.losses import FloatArray, Loss
from trueup.read.columns import column, floats, plain_numbers, refuse_rows


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
        raise InvalidInputError(
            "y_true must be 0 and 1, or labels must name the classes",
            f"dtype {raw.dtype}",
            "Pass labels=[negative, positive].",
        )
    values = raw.astype(np.float64, copy=False)
    valid = (values == 0.0) | (values == 1.0)
    if not valid.all():
        fix = "Pass labels=[negative, positive] for other names."
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
    refuse_rows(names[index] != raw, raw, f"y_true must be one of {names.tolist()}", "Fix labels=.")
    return index.astype(np.float64)
