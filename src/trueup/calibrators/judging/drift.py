"""Follow drift: fit on the newest rows, as many as did best at the origins so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from trueup.calibrators.base import Calibrator, Rows
from trueup.calibrators.judging.guard_decision import OriginChange
from trueup.calibrators.judging.origins import IndexArray, Origin
from trueup.calibrators.judging.paired_change import Change, field_error_change, log_loss_change
from trueup.calibrators.levels import fit_levels
from trueup.errors import UndefinedMetricError

DRIFT_WINDOWS = (1.0, 0.5, 0.25, 0.125)
"""Shares of the rows, the newest, among which a calibrator that follows drift chooses."""

_RESOLVED = 2.0
"""Standard errors by which a window must beat all rows before it replaces them."""


@dataclass(frozen=True)
class Backtest:
    """A calibrator and the rows that it is fitted and checked on.

    Attributes
    ----------
    calibrator : Calibrator
        Cloned for each fit.
    rows : Rows
        All rows.
    n_classes : int
        Classes that every part must hold.
    """

    calibrator: Calibrator
    rows: Rows
    n_classes: int

    def fitted_on(self, chosen: IndexArray) -> Calibrator:
        """Return the calibrator fitted on the chosen rows.

        Raises
        ------
        UndefinedMetricError
            If they lack a class, or determine no finite solution.
        """
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
        past = origin.window(round(window * len(self.rows.y)))
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

    Parameters
    ----------
    backtest : Backtest
        The calibrator and the rows.
    origins : tuple of Origin
        In order of time.
    windows : tuple of float
        Shares of all rows. The largest is the one to beat.

    Notes
    -----
    No origin is judged with a window that its own rows chose, so the changes are those of a user
    who followed the rule all along.
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
