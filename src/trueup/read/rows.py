"""Validation rows in one form, after every check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import FloatArray, Loss, for_columns, get_loss
from trueup.read.columns import as_array, column, read_weight
from trueup.read.ids import read_ids
from trueup.read.targets import Notices, check_logit, check_prediction, read_labels
from trueup.read.times import read_times
from trueup.splits import GroupArray


@dataclass(frozen=True)
class Rows:
    """Checked validation rows.

    Attributes
    ----------
    loss : Loss
        The loss that fits the predictions.
    y_true : float array of shape (n,)
        Labels: 0/1, class indices, targets or counts.
    margin : float array of shape (n,) or (n, k)
        Predictions on the scale on which the bias acts.
    weight : float array of shape (n,) or None
        Sample weights.
    row_id : uint64 array of shape (n,)
        Identity of each row.
    times : array of shape (n,) or None
        Time of each row.
    """

    loss: Loss
    y_true: FloatArray
    margin: FloatArray
    weight: FloatArray | None
    row_id: UInt64Array
    times: NDArray[Any] | None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None where the target is a number."""
        n_columns = self.margin.shape[1] if self.margin.ndim == 2 else 1
        return {"binary": 2, "multiclass": n_columns}.get(self.loss.task)

    def only(self, kept: NDArray[np.bool_]) -> Rows:
        """Return the rows of a mask."""
        return Rows(
            self.loss,
            self.y_true[kept],
            self.margin[kept],
            None if self.weight is None else self.weight[kept],
            self.row_id[kept],
            None if self.times is None else self.times[kept],
        )

    def support(self, groups: GroupArray, n_groups: int) -> NDArray[np.intp]:
        """Return the rows of positive weight in each group and class, (n_groups, n_classes or 1).

        A row of weight zero is a row that is not there.
        """
        n_classes = self.n_classes or 1
        cell = groups if n_classes == 1 else groups * n_classes + self.y_true.astype(np.intp)
        if self.weight is not None:
            cell = cell[self.weight > 0.0]
        return np.bincount(cell, minlength=n_groups * n_classes).reshape(n_groups, n_classes)


@dataclass(frozen=True)
class Place:
    """Where a block of rows lies among the rows of one call, and the notices of that call."""

    first_row: int
    notices: Notices


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
    UnscorableInputError
        For no rows at all, and for predictions that are not finite; it is an InvalidInputError too.
    """
    prediction = read_prediction(y_pred, y_logit)
    chosen = for_columns(get_loss(loss), n_columns(prediction))
    raw_labels = column(y_true, "y_true")
    n = len(raw_labels)
    if n == 0:
        raise UnscorableInputError(
            "y_true must hold at least one row", "0", "Pass the validation rows."
        )
    if len(prediction) != n:
        name = "y_pred" if y_logit is None else "y_logit"
        raise InvalidInputError(
            f"{name} must have as many rows as y_true ({n})",
            f"{len(prediction)}",
            "Pass the prediction of each row.",
        )
    first_row, notices = (0, Notices()) if place is None else (place.first_row, place.notices)
    positions = np.arange(first_row, first_row + n, dtype=np.uint64)
    given = (
        check_prediction(prediction, chosen, notices)
        if y_logit is None
        else check_logit(prediction, chosen)
    )
    margin = chosen.link(given) if y_logit is None else given
    targets = read_labels(raw_labels, chosen, labels, n_classes=n_columns(prediction))
    weight = read_weight(sample_weight, n, may_be_zero=place is not None)
    notices.look(targets, given, weight, is_logit=y_logit is not None)
    rows = Rows(
        loss=chosen,
        y_true=targets,
        margin=np.ascontiguousarray(margin),
        weight=weight,
        row_id=positions if row_id is None else read_ids(row_id, n),
        times=None if times is None else read_times(times, n),
    )
    if place is None:
        notices.warn()
    return rows


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


def require_fields(fields: Any, loss: Loss) -> None:
    """Refuse fields that are no mapping, or that go with a loss without probabilities."""
    if not hasattr(fields, "items"):
        raise InvalidInputError(
            "fields must be a mapping of name to column",
            f"{type(fields).__name__}",
            "Pass a dict or a data frame.",
        )
    if list(fields) and loss.task != "binary":
        raise InvalidInputError(
            "fields must go with a loss of binary probabilities",
            f"loss {loss.name!r}",
            "Drop fields.",
        )
