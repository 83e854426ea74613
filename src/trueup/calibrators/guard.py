"""The guard: a calibrator is used only if it helps on later rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone

from trueup.calibrators.base import Calibrator, FieldArrays, Rows
from trueup.calibrators.levels import fit_levels
from trueup.calibrators.paired_change import Change, field_error_change, log_loss_change
from trueup.calibrators.probabilities import Columns, FloatArray
from trueup.errors import InvalidInputError, UndefinedMetricError


@dataclass(frozen=True)
class GuardDecision:
    """What the guard found, and what it did.

    Attributes
    ----------
    kept : bool
        Whether the calibrator is used; if not, predictions pass unchanged.
    reason : str
        The decision in a sentence.
    log_loss_change, log_loss_change_high : float
        Calibrated minus uncalibrated log loss on the checked rows, in nats, and the upper end of
        its one-sided interval. NaN if part one could not be fitted.
    field_error_change, field_error_change_standard_error : float
        Change of the debiased squared field error, the mean over the fields; 0 without fields.
    n_fit, n_check : int
        Rows of part one, which fitted, and of part two, which decided.
    refitted : bool
        Whether the calibrator in use was fitted again on all rows.
    """

    kept: bool
    reason: str
    log_loss_change: float
    log_loss_change_high: float
    field_error_change: float
    field_error_change_standard_error: float
    n_fit: int
    n_check: int
    refitted: bool


class Guarded(Calibrator):
    """A calibrator that steps aside where it does not help.

    The calibrator is fitted on the first part of the rows and kept if and only if, on the second
    part, the one-sided upper bound of the paired log loss change is below 0 and the debiased field
    error rises by less than one standard error. If kept it is fitted again on all rows; otherwise
    predictions pass unchanged.

    Parameters
    ----------
    calibrator : Calibrator
        What to guard; it is cloned.
    check_fraction : float, default 0.5
        Share of the rows in part two.
    confidence_level : float, default 0.95
        Of the one-sided bound.
    random_state : int, default 0
        Seed of the parts where no times are given.

    Attributes
    ----------
    decision_ : GuardDecision
        What was found.
    calibrator_ : Calibrator or None
        The calibrator in use, None for the identity.

    Notes
    -----
    On exchangeable rows a calibrator without gain is kept with a probability of at most
    ``1 - confidence_level``, up to the normal approximation. After part two the world may change:
    the guard speaks of the rows it saw.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import ShiftCalibrator
    >>> p, y = np.full(800, 0.5), np.tile([0, 0, 0, 1], 200)
    >>> guarded = Guarded(ShiftCalibrator()).fit(p, y)
    >>> guarded.decision_.kept, guarded.predict_proba([0.5])[0].round(2).tolist()
    (True, [0.75, 0.25])
    """

    state_names = ("decision_", "calibrator_")

    def __init__(
        self,
        calibrator: Calibrator,
        *,
        check_fraction: float = 0.5,
        confidence_level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        self.calibrator = calibrator
        self.check_fraction = check_fraction
        self.confidence_level = confidence_level
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        fields: Columns | None = None,
        sample_weight: Any = None,
        times: Any = None,
    ) -> Self:
        """Fit, check and decide.

        Parameters
        ----------
        X, y, fields, sample_weight
            As for every calibrator.
        times : array-like of shape (n,), optional
            Part one holds the earlier rows; rows of one time stay together. Without times the parts
            are drawn at random.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If an input has the wrong shape or range, or the times leave a part empty.
        """
        rows = self._checked_rows(X, y, fields, sample_weight)
        if not (0.0 < self.check_fraction < 1.0 and 0.5 <= self.confidence_level < 1.0):
            raise InvalidInputError(
                "check_fraction must be in (0, 1) and confidence_level in [0.5, 1); got "
                f"{self.check_fraction!r} and {self.confidence_level!r}. Use 0.5 and 0.95."
            )
        self._guard(rows, self._is_checked(rows, times))
        return self

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:
        self.fit(p, y, fields=fields, sample_weight=weight)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        if self.calibrator_ is None:
            return p
        return _predict(self.calibrator_, p, fields)

    def _guard(self, rows: Rows, checked: NDArray[np.bool_]) -> None:
        n_fit, n_check = int((~checked).sum()), int(checked.sum())
        try:
            first = self._fitted_on(rows, ~checked)
        except UndefinedMetricError as error:
            reason = f"not kept: part one could not be fitted ({error})"
            nan = float("nan")
            self.calibrator_, self.decision_ = (
                None,
                GuardDecision(False, reason, nan, nan, nan, nan, n_fit, n_check, refitted=False),
            )
            return
        loss, field = _changes(rows, checked, first)
        high = loss.value + float(norm.ppf(self.confidence_level)) * loss.standard_error
        kept, reason = _verdict(high, field, bool(rows.fields))
        self.calibrator_ = self._fitted_on(rows, np.ones(len(rows.y), np.bool_)) if kept else None
        self.decision_ = GuardDecision(
            kept=kept,
            reason=reason,
            log_loss_change=loss.value,
            log_loss_change_high=high,
            field_error_change=field.value,
            field_error_change_standard_error=field.standard_error,
            n_fit=n_fit,
            n_check=n_check,
            refitted=kept,
        )

    def _fitted_on(self, rows: Rows, chosen: NDArray[np.bool_]) -> Calibrator:
        labels = rows.y[chosen].astype(np.intp)
        n_classes = len(self.classes_)
        counts = np.bincount(labels, minlength=n_classes)
        if not counts.all():
            raise UndefinedMetricError(
                f"y must hold all {n_classes} classes in part one; got counts {counts.tolist()}. "
                "Use more rows."
            )
        fields = {name: column[chosen] for name, column in rows.fields.items()}
        calibrator: Calibrator = clone(self.calibrator)
        calibrator.fit(rows.p[chosen], labels, fields=fields, sample_weight=rows.weight[chosen])
        return calibrator

    def _is_checked(self, rows: Rows, times: Any) -> NDArray[np.bool_]:
        n = len(rows.y)
        if times is None:
            order = np.random.default_rng(self.random_state).permutation(n)
            checked = order >= round((1.0 - self.check_fraction) * n)
        else:
            checked = _later(_check_times(times, rows.kept), self.check_fraction)
        if not checked.any() or checked.all():
            raise InvalidInputError(
                f"times must leave rows in both parts; got {int(checked.sum())} of {n} rows in "
                "part two. Give more rows or finer times."
            )
        return checked

    def _takes_multiclass(self) -> bool:
        return self.calibrator._takes_multiclass()


def _changes(rows: Rows, checked: NDArray[np.bool_], first: Calibrator) -> tuple[Change, Change]:
    fields = {name: column[checked] for name, column in rows.fields.items()}
    y, before, weight = rows.y[checked], rows.p[checked], rows.weight[checked]
    after = _predict(first, before, fields)
    loss = log_loss_change(y, before, after, weight)
    if not fields:
        return loss, Change(0.0, 0.0)
    codes = [fit_levels(column).codes(column) for column in fields.values()]
    return loss, field_error_change(y, before, after, weight, codes)


def _verdict(high: float, field: Change, has_fields: bool) -> tuple[bool, str]:
    if high >= 0.0:
        return False, f"not kept: the upper bound of the log loss change is {high:.3g}, not below 0"
    if has_fields and field.value >= field.standard_error:
        return False, (
            f"not kept: the field error rises by {field.value:.3g}, "
            f"one standard error is {field.standard_error:.3g}"
        )
    return True, f"kept: the upper bound of the log loss change is {high:.3g}, below 0"


def _predict(calibrator: Calibrator, p: FloatArray, fields: FieldArrays) -> FloatArray:
    calibrated = calibrator.predict_proba(p, fields=fields)
    return calibrated if p.ndim == 2 else np.asarray(calibrated[:, 1])


def _check_times(times: Any, kept: NDArray[np.bool_]) -> NDArray[Any]:
    array = np.asarray(times)
    if array.shape != kept.shape:
        raise InvalidInputError(
            f"times must have shape {kept.shape}; got {array.shape}. Give one time per row."
        )
    return array[kept]


def _later(times: NDArray[Any], fraction: float) -> NDArray[np.bool_]:
    """Return the rows of the later times, whose share is as near to the fraction as ties allow."""
    distinct, count = np.unique(times, return_counts=True)
    share_before = np.concatenate([[0.0], np.cumsum(count)[:-1]]) / len(times)
    cut = int(np.abs(share_before - (1.0 - fraction)).argmin())
    return np.asarray(times >= distinct[cut])
