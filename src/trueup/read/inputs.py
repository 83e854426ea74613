"""From what users have to arrays that were checked: the only place that looks at raw input.

Columns may come from numpy, pandas, polars or torch. Nothing is guessed: what could be read in two
ways is an error that says how to say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import Loss, for_columns, get_loss
from trueup.read.columns import column, read_weight
from trueup.read.ids import read_ids
from trueup.read.labels import read_labels
from trueup.read.notices import Notices, Place
from trueup.read.predictions import check_logit, check_prediction, n_columns, read_prediction
from trueup.read.rows import Rows
from trueup.read.times import read_times


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
    notices = Notices() if place is None else place.notices
    margin = (
        chosen.link(check_prediction(prediction, chosen, notices))
        if y_logit is None
        else check_logit(prediction, chosen)
    )
    rows = Rows(
        loss=chosen,
        y_true=read_labels(raw_labels, chosen, labels, n_classes=n_columns(prediction)),
        margin=np.ascontiguousarray(margin),
        weight=read_weight(sample_weight, n, may_be_zero=place is not None),
        row_id=read_ids(row_id, n, 0 if place is None else place.first_row),
        times=None if times is None else read_times(times, n),
    )
    if place is None:
        notices.warn()
    return rows


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
