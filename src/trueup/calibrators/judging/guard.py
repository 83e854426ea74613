"""The guard: a calibrator is used only if it helps on later rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from trueup.arguments import check_fraction, check_one_of, whole_number
from trueup.calibrators.base import Calibrator, Rows
from trueup.calibrators.inputs import Columns, FieldArrays, FloatArray
from trueup.calibrators.judging.drift import (
    Backtest,
    Origin,
    choose_window,
    cut_origins,
    random_halves,
)
from trueup.calibrators.judging.guard_decision import LEAST_ORIGINS, Priority, Rule, not_fitted
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.read.times import read_times


class Guarded(Calibrator):
    """A calibrator that steps aside where it does not help.

    With times, it is fitted up to several origins and checked on the rows that follow each. It is
    kept if and only if

    - the one-sided upper bound of the mean log loss change is below 0,
    - the mean change is below 0 by more than its standard error among the origins,
    - the log loss rises beyond its one-sided bound at neither of the two newest origins, and
    - with ``priority="field"``, the debiased field error rises by less than one standard error.

    Without times there is one origin: two random halves. If kept, the calibrator is fitted again on
    all rows, or on the window that follows drift best; otherwise predictions pass unchanged.

    Parameters
    ----------
    calibrator : Calibrator
        What to guard; it is cloned.
    check_fraction : float, default 0.5
        Share of the rows, the newest, that are checked.
    confidence_level : float, default 0.95
        Of the one-sided bounds.
    random_state : int, default 0
        Seed of the halves where no times are given.
    n_origins : int, default 8
        Origins where times are given, at least 4. Fewer are used where the times are too coarse,
        and the reason says so.
    windows : tuple of float, default (1.0,)
        Shares of the rows, the newest, that the calibrator may be fitted on. With several, such as
        ``DRIFT_WINDOWS``, it follows drift: each origin uses the window that the origins before it
        chose. They need times.
    priority : {"field", "log_loss"}, default "field"
        Whether a rising field error refuses a calibrator that lowers the log loss.

    Attributes
    ----------
    decision_ : GuardDecision
        What was found.
    calibrator_ : Calibrator or None
        The calibrator in use, None for the identity.

    Notes
    -----
    On exchangeable rows a calibrator without gain is kept with a probability of at most
    ``1 - confidence_level``, up to the normal approximation. Under drift the origins tell how a
    calibrator fares on the next part, as long as one of theirs: fit it again by then. No guard
    foresees a jump after the last row.

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
        n_origins: int = 8,
        windows: Sequence[float] = (1.0,),
        priority: Priority = "field",
    ) -> None:
        self.calibrator = calibrator
        self.check_fraction = check_fraction
        self.confidence_level = confidence_level
        self.random_state = random_state
        self.n_origins = n_origins
        self.windows = windows
        self.priority = priority

    @property
    def fields_read_(self) -> tuple[str, ...]:
        """Names of the fields that ``predict_proba`` needs: none where it steps aside."""
        inner = getattr(self, "calibrator_", None)
        return () if inner is None else tuple(inner.fields_read_)

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
            Time of each row; rows of one time stay together. Without times the halves are drawn at
            random, which says nothing about later rows.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If an input has the wrong shape or range, or the times leave a part empty.
        """
        rows = self._checked_rows(X, y, fields, sample_weight)
        self._check_options(times)
        self._guard(rows, self._origins(rows, times))
        return self

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:
        self.fit(p, y, fields=fields, sample_weight=weight)

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        if self.calibrator_ is None:
            return p
        calibrated = self.calibrator_.predict_proba(p, fields=fields)
        return calibrated if p.ndim == 2 else np.asarray(calibrated[:, 1])

    def _guard(self, rows: Rows, origins: tuple[Origin, ...]) -> None:
        backtest = Backtest(self.calibrator, rows, len(self.classes_))
        self.calibrator_ = None
        try:
            changes, window = choose_window(backtest, origins, tuple(self.windows))
        except UndefinedMetricError as error:
            n_check = sum(len(origin.following) for origin in origins)
            self.decision_ = not_fitted(error, len(origins[0].past), n_check)
            return
        self.decision_ = Rule(self.confidence_level, self.priority).decide(changes, window)
        if self.decision_.kept:
            newest = np.concatenate([origins[-1].past, origins[-1].following])
            chosen = newest[-round(window * len(newest)) :]
            self.calibrator_ = backtest.fitted_on(np.sort(chosen))

    def _origins(self, rows: Rows, times: Any) -> tuple[Origin, ...]:
        if times is None:
            return (random_halves(len(rows.y), self.check_fraction, self.random_state),)
        known = read_times(times, len(rows.kept))[rows.kept]
        return cut_origins(known, self.check_fraction, self.n_origins)

    def _check_options(self, times: Any) -> None:
        check_fraction("check_fraction", self.check_fraction, "Use 0.5.")
        if not 0.5 <= self.confidence_level < 1.0:
            raise InvalidInputError(
                "confidence_level must be in [0.5, 1)", repr(self.confidence_level), "Use 0.95."
            )
        whole_number("n_origins", self.n_origins, LEAST_ORIGINS, "Use 8.")
        check_one_of("priority", self.priority, ("field", "log_loss"), "Choose one.")
        if not self.windows or not all(0.0 < window <= 1.0 for window in self.windows):
            raise InvalidInputError(
                "windows must be shares in (0, 1]",
                repr(tuple(self.windows)),
                "Use for example DRIFT_WINDOWS.",
            )
        if times is None and tuple(self.windows) != (1.0,):
            raise InvalidInputError(
                "windows must be (1.0,) without times",
                repr(tuple(self.windows)),
                "Pass the time of each row as times.",
            )

    def _takes_multiclass(self) -> bool:
        return self.calibrator._takes_multiclass()
