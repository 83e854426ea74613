"""Follow drift: fit on the newest rows, as many as did best at the origins so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from trueup.calibrators.base import Calibrator, Rows
from trueup.calibrators.inputs import FloatArray, fit_levels, to_logit
from trueup.calibrators.judging.guard_decision import Change, OriginChange
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.cells import group_rows, squared_error, squared_error_slope
from trueup.fields.levels import read_levels
from trueup.losses import LogLoss, SoftmaxLogLoss

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Origin:
    """A moment: the rows known by then, in order of time, and the ``following`` that are checked.

    ``until`` and ``checked_until`` are times of the last row of each; empty where rows have none.
    """

    past: IndexArray
    following: IndexArray
    until: str = ""
    checked_until: str = ""


def cut_origins(times: NDArray[Any], check_fraction: float, n_origins: int) -> tuple[Origin, ...]:
    """Cut the newest share of the rows into parts of near equal size, each after an origin.

    Rows of one time stay together, so there may be fewer origins than asked; refused are times that
    leave no row before the first origin or none after it.
    """
    n, order = len(times), np.argsort(times, kind="stable")
    distinct, count = np.unique(times, return_counts=True)
    ends = np.cumsum(count)[:-1]  # rows up to and with each time but the last
    if not len(ends):
        raise InvalidInputError(
            "times must leave rows in both parts",
            f"{n} of {n} rows in part two",
            "Give more rows or finer times.",
        )
    wanted = n * (1.0 - check_fraction * np.arange(n_origins, 0, -1) / n_origins)
    chosen = np.unique(np.abs(ends[None, :] - wanted[:, None]).argmin(axis=1))
    bounds = [*ends[chosen].tolist(), n]
    last = [*chosen.tolist(), len(distinct) - 1]
    return tuple(
        Origin(
            order[: bounds[k]],
            order[bounds[k] : bounds[k + 1]],
            _shown(distinct[last[k]]),
            _shown(distinct[last[k + 1]]),
        )
        for k in range(len(chosen))
    )


def _shown(time: Any) -> str:
    """Return a number as it is, and a datetime without the zeros of midnight."""
    if not isinstance(time, np.datetime64):
        return str(time)
    day, _, clock = str(time).partition("T")
    clock = clock.rstrip("0.:") if not clock.strip("0.:") else clock.partition(".000")[0]
    return f"{day} {clock}".strip()


def random_halves(n: int, check_fraction: float, random_state: int) -> Origin:
    """Return two random parts of the rows, for rows that have no times."""
    shuffled = np.random.default_rng(random_state).permutation(n)
    checked = shuffled >= round((1.0 - check_fraction) * n)
    if not checked.any() or checked.all():
        raise InvalidInputError(
            "check_fraction must leave rows in both parts",
            f"{int(checked.sum())} of {n} rows in part two",
            "Give more rows.",
        )
    return Origin(np.flatnonzero(~checked), np.flatnonzero(checked))


DRIFT_WINDOWS = (1.0, 0.5, 0.25, 0.125)
"""Shares of the rows, the newest, among which a calibrator that follows drift chooses."""

_RESOLVED = 2.0
"""Standard errors by which a window must beat all rows before it replaces them."""


@dataclass(frozen=True)
class Backtest:
    """A calibrator, cloned for each fit, and the rows that it is fitted and checked on."""

    calibrator: Calibrator
    rows: Rows
    n_classes: int

    def fitted_on(self, chosen: IndexArray) -> Calibrator:
        """Return the calibrator fitted on the chosen rows; refuse rows that lack a class."""
        labels = self.rows.y[chosen].astype(np.intp)
        counts = np.bincount(labels, minlength=self.n_classes)
        if not counts.all():
            raise UndefinedMetricError(
                f"y must hold all {self.n_classes} classes in part one",
                f"counts {counts.tolist()}",
                "Use more rows.",
            )
        fields = {name: column[chosen] for name, column in self.rows.fields.items()}
        calibrator: Calibrator = clone(self.calibrator)
        weight = self.rows.weight[chosen]
        return calibrator.fit(self.rows.p[chosen], labels, fields=fields, sample_weight=weight)

    def at(self, origin: Origin, window: float) -> OriginChange:
        """Fit on the newest share of all rows as of the origin, and check on what follows it."""
        past = origin.past[-round(window * len(self.rows.y)) :]
        loss, field = self._changes(self.fitted_on(np.sort(past)), origin.following)
        return OriginChange(
            origin.until,
            origin.checked_until,
            len(past),
            len(origin.following),
            loss.value,
            loss.standard_error,
            field.value,
            field.standard_error,
        )

    def _changes(self, fitted: Calibrator, checked: IndexArray) -> tuple[Change, Change]:
        rows = self.rows
        fields = {name: column[checked] for name, column in rows.fields.items()}
        y, before, weight = rows.y[checked], rows.p[checked], rows.weight[checked]
        after = fitted.predict_proba(before, fields=fields)
        after = after if before.ndim == 2 else after[:, 1]
        loss = log_loss_change(y, before, after, weight)
        if not fields:
            return loss, Change(0.0, 0.0)
        codes = [fit_levels(column).codes(column) for column in fields.values()]
        return loss, field_error_change(y, before, after, weight, codes)


def choose_window(
    backtest: Backtest, origins: tuple[Origin, ...], windows: tuple[float, ...]
) -> tuple[list[OriginChange], float]:
    """Return what each origin says with the window chosen before it, and the window to use now.

    Origins are in order of time, windows shares of all rows; the largest is the one to beat. No
    origin is judged with a window that its own rows chose, so the changes are those of a user who
    followed the rule all along.
    """
    largest = max(windows)
    tried: dict[float, list[OriginChange]] = {window: [] for window in windows}
    changes = []
    for origin in origins:
        chosen = _best(tried, largest)
        for window, found in list(tried.items()):
            try:
                found.append(backtest.at(origin, window))
            except UndefinedMetricError:
                if window == largest:
                    raise
                del tried[window]  # too short to hold each class
        changes.append(tried.get(chosen, tried[largest])[-1])
    return changes, _best(tried, largest)


def _best(tried: dict[float, list[OriginChange]], largest: float) -> float:
    """Return the window with the lowest log loss so far, if it clearly beats the largest."""
    weight = [origin.n_check for origin in tried[largest]]
    if len(weight) < 2:
        return largest
    loss = {window: np.array([o.log_loss for o in found]) for window, found in tried.items()}
    best = min(loss, key=lambda window: np.average(loss[window], weights=weight))
    gain = loss[largest] - loss[best]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return best if gain.mean() > _RESOLVED * error else largest


def row_log_loss(y: FloatArray, p: FloatArray) -> FloatArray:
    """Return the log loss of each row in nats, for p of shape (n,) or (n, k)."""
    loss = SoftmaxLogLoss() if p.ndim == 2 else LogLoss()
    return loss.values(y, to_logit(p))


def log_loss_change(
    y: FloatArray, before: FloatArray, after: FloatArray, weight: FloatArray
) -> Change:
    """Return the paired change of the mean log loss in nats; probabilities are (n,) or (n, k)."""
    difference = row_log_loss(y, after) - row_log_loss(y, before)
    share = weight / weight.sum()
    mean = float(share @ difference)
    return Change(mean, float(np.sqrt((share**2) @ (difference - mean) ** 2)))


def field_error_change(
    y: FloatArray,
    before: FloatArray,
    after: FloatArray,
    weight: FloatArray,
    codes: Sequence[NDArray[np.intp]],
) -> Change:
    """Return the change of ``FieldCalibration.debiased``, its mean over the fields.

    ``codes`` holds the cell of each row, for each field. With k > 2 classes the error is summed
    over the classes.
    """
    label, before, after = _one_column_per_class(y, before, after)
    value, row = 0.0, np.zeros(len(y))
    for code in codes:
        levels = read_levels(code, "codes")
        for own, old, new in zip(label.T, before.T, after.T, strict=True):
            before_it = group_rows(levels, own, old, weight)
            after_it = replace(before_it, y_proba=new[before_it.order])
            value += squared_error(after_it.sums) - squared_error(before_it.sums)
            slope = squared_error_slope(before_it, after_it.y_proba)
            row[before_it.order] += slope * (after_it.y_true - after_it.y_proba)
    return Change(value / len(codes), float(np.sqrt(row @ row)) / len(codes))


def _one_column_per_class(
    y: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if before.ndim == 1:
        return y[:, None], before[:, None], after[:, None]
    return np.eye(before.shape[1])[y.astype(np.intp)], before, after
