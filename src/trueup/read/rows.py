"""Validation rows in one form, after every check, and what should be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup.errors import UnscorableInputError
from trueup.losses import FloatArray, Loss, for_columns, get_loss
from trueup.losses.elementary import expit
from trueup.read.columns import column, packed, read_weight, require_rows
from trueup.read.ids import FewIds, read_ids
from trueup.read.targets import (
    ROW_SUM_TOLERANCE,
    SATURATING_LOGIT,
    check_logit,
    check_prediction,
    n_columns,
    read_labels,
    read_prediction,
)
from trueup.read.times import read_times
from trueup.user_warning import warn_user


@dataclass(frozen=True)
class Rows:
    """Checked validation rows, with the loss that fits the predictions.

    ``y_true`` (n,) are 0/1, class indices, targets or counts; ``margin`` (n,) or (n, k) predictions
    on the scale on which the bias acts; ``weight``, ``row_id`` and ``times`` of shape (n,).
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
        parts = [item for item in vars(self).items() if isinstance(item[1], np.ndarray)]
        columns: dict[str, Any] = {name: part[kept] for name, part in parts}
        return replace(self, **columns)

    def support(self, groups: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
        """Return the rows of positive weight by group and class, (n_groups, n_classes or 1)."""
        n_classes = self.n_classes or 1
        cell = groups if n_classes == 1 else groups * n_classes + self.y_true.astype(np.intp)
        if self.weight is not None:
            cell = cell[self.weight > 0.0]
        return np.bincount(cell, minlength=n_groups * n_classes).reshape(n_groups, n_classes)


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
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0

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
        self.n += n
        self.total += n * float(gains.mean())
        self.squares += n * float((gains**2).mean())
        self.largest = max(self.largest, float(logit.max()))

    def add(self, other: _Gain) -> None:
        self.n += other.n
        self.total += other.total
        self.squares += other.squares
        self.largest = max(self.largest, other.largest)

    def is_clear(self, n: int) -> bool:
        """Tell whether all n rows were added, and gain by more than two standard errors.

        Small logits of an early epoch do not.
        """
        mean = self.total / n
        return self.n == n and mean > 2.0 * sqrt(max(self.squares / n - mean**2, 0.0) / n)


@dataclass
class Notices:
    """What is valid, but should be said once for all rows of a call."""

    sums: Counter[str] = field(default_factory=Counter)
    """Rows by what was seen of them."""
    equal_range: tuple[float, float] = (np.inf, -np.inf)
    """Of the predictions in blocks where they equal the labels."""
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
        self.sums["seen"] += n
        if given.ndim == 1 and given[0] == y_true[0] and np.array_equal(given, y_true):
            self.sums["equal"] += n
            self._widen(float(given.min()), float(given.max()))
        if is_logit and head.min() >= 0.0:
            self.as_shares.look(y_true, given, n)
            self.as_percentages.look(y_true, given, n)

    def _widen(self, low: float, high: float) -> None:
        self.equal_range = min(self.equal_range[0], low), max(self.equal_range[1], high)

    def add(self, other: Notices) -> None:
        self.sums.update(other.sums)
        self._widen(*other.equal_range)
        self.as_shares.add(other.as_shares)
        self.as_percentages.add(other.as_percentages)
        if other.ids is not None:
            self.ids = self.ids or FewIds()
            self.ids.add(other.ids)

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
        if self.ids is not None:
            self.ids.warn()
        if self.sums["seen"] >= _TELLING_ROWS and not _known.get():
            self._warn_of_mistaken_columns(self.sums["seen"])

    def _warn_of_mistaken_columns(self, n: int) -> None:
        low, high = self.equal_range
        percentages = self.as_percentages
        if self.sums["equal"] == n and low < high:
            warn_user(
                f"The predictions equal y_true in all {n:,} rows: a column of labels may "
                "have been taken for them. Pass what the model predicted."
            )
        elif self.as_shares.is_clear(n):
            warn_user(
                f"All {n:,} values of y_logit are in [0, 1], and fit better as "
                "probabilities. If they are, pass them as y_pred."
            )
        elif percentages.largest > _LARGE_LOGIT and percentages.is_clear(n):
            warn_user(
                f"All {n:,} values of y_logit are in [0, 100], and fit better as "
                "percentages. If they are, divide by 100 and pass them as y_pred."
            )


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
    notices are collected for one warning. Refused are wrong shapes, types and ranges, with the
    argument and the first bad index; no rows and predictions that are not finite are unscorable.
    """
    prediction = read_prediction(y_pred, y_logit)
    chosen = for_columns(get_loss(loss), n_columns(prediction))
    raw_labels = column(y_true, "y_true")
    n = len(raw_labels)
    if n == 0:
        raise UnscorableInputError(
            "y_true must hold at least one row", "0", "Pass the validation rows."
        )
    require_rows(n, "y_pred" if y_logit is None else "y_logit", len(prediction))
    first_row, notices = (0, Notices()) if place is None else (place.first_row, place.notices)
    positions = np.arange(first_row, first_row + n, dtype=np.uint64)
    if y_logit is None:
        given = check_prediction(prediction, chosen, notices.sums)
        margin = chosen.link(given)
    else:
        given = margin = check_logit(prediction, chosen)
    targets = read_labels(raw_labels, chosen, labels, n_classes=n_columns(prediction))
    weight = read_weight(sample_weight, n, may_be_zero=place is not None)
    notices.look(targets, given, weight, is_logit=y_logit is not None)
    rows = Rows(
        loss=chosen,
        y_true=packed(targets),
        margin=packed(margin),
        weight=weight,
        row_id=positions if row_id is None else packed(read_ids(row_id, n)),
        times=None if times is None else read_times(times, n),
    )
    if place is None:
        notices.warn()
    return rows
