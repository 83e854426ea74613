"""A fitted model together with its calibrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from trueup.calibrators.base import Calibrator
from trueup.calibrators.inputs import Columns, FloatArray
from trueup.calibrators.judging.guard import Guarded
from trueup.calibrators.judging.guard_decision import GuardDecision
from trueup.errors import InvalidInputError, NotFittedError


class CalibratedModel(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probabilities go through a calibrator.

    Parameters
    ----------
    model : object with ``predict_proba``, or callable
        The fitted model; it is never fitted again. A callable maps ``X`` to probabilities.
    calibrator : Calibrator
        Cloned and fitted on the development set.
    fields : sequence of str, default ()
        Columns of ``X`` that the calibrator reads, where ``X`` is a data frame or a mapping.
    guard : bool, default True
        Put the calibrator under :class:`Guarded`, if it isn't. On drifting data most calibrators
        make the log loss worse.

    Attributes
    ----------
    calibrator_ : Calibrator
        The fitted calibrator.
    classes_ : array of shape (k,)
        The labels.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.calibrators import ShiftCalibrator
    >>> def too_high(X):
    ...     return np.full(len(X), 0.5)
    >>> model = CalibratedModel(too_high, ShiftCalibrator())
    >>> X, y = np.zeros((800, 3)), np.tile([0, 0, 0, 1], 200)
    >>> model.fit(X, y).predict_proba(X[:1]).round(2).tolist()
    [[0.75, 0.25]]
    """

    def __init__(
        self,
        model: Any,
        calibrator: Calibrator,
        *,
        fields: Sequence[str] = (),
        guard: bool = True,
    ) -> None:
        self.model = model
        self.calibrator = calibrator
        self.fields = fields
        self.guard = guard

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        fields: Columns | None = None,
        sample_weight: Any = None,
        times: Any = None,
    ) -> Self:
        """Fit the calibrator on a development set, which the model has not seen.

        Parameters
        ----------
        X : array-like or data frame of n rows
            Features, as the model takes them.
        y : array-like of shape (n,)
            Labels.
        fields : mapping from name to column, optional
            Fields beside those taken from ``X``.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights.
        times : array-like of shape (n,), optional
            Time of each row, for the guard.

        Raises
        ------
        InvalidInputError
            If the model gives no probabilities, its classes differ from the labels, or times are
            given without a guard.
        """
        calibrator: Calibrator = clone(self.calibrator)
        if self.guard and not isinstance(calibrator, Guarded):
            calibrator = Guarded(calibrator)
        more = {} if times is None else {"times": times}
        if more and not isinstance(calibrator, Guarded):
            raise InvalidInputError(
                "times must be left out with guard=False", "times", "They order the guard's parts."
            )
        calibrator.fit(
            self._model_proba(X),
            y,
            fields=self._columns(X, fields),
            sample_weight=sample_weight,
            **more,
        )
        self._check_model_classes(calibrator.classes_)
        self.calibrator_, self.classes_ = calibrator, calibrator.classes_
        return self

    def predict_proba(self, X: Any, *, fields: Columns | None = None) -> FloatArray:
        """Return calibrated probabilities of shape (n, k)."""
        if not hasattr(self, "calibrator_"):
            raise NotFittedError(
                "CalibratedModel must be fitted before it predicts",
                "no fitted state",
                "Call fit with a development set.",
            )
        return self.calibrator_.predict_proba(self._model_proba(X), fields=self._columns(X, fields))

    def predict(self, X: Any, *, fields: Columns | None = None) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,)."""
        most_probable = self.predict_proba(X, fields=fields).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])

    @property
    def decision_(self) -> GuardDecision | None:
        """What the guard decided; None without a guard."""
        return getattr(self.calibrator_, "decision_", None)

    def _model_proba(self, X: Any) -> FloatArray:
        predict: Callable[[Any], Any] | None = getattr(self.model, "predict_proba", None)
        if predict is None and callable(self.model):
            predict = self.model
        if predict is None:
            raise InvalidInputError(
                "model must have predict_proba or be callable",
                f"{type(self.model).__name__}",
                "Wrap it in a function that returns probabilities.",
            )
        return np.asarray(predict(X), dtype=np.float64)

    def _columns(self, X: Any, fields: Columns | None) -> Columns:
        return {**{name: X[name] for name in self.fields}, **(fields or {})}

    def _check_model_classes(self, labels: NDArray[Any]) -> None:
        known = getattr(self.model, "classes_", None)
        if known is not None and list(known) != list(labels):
            raise InvalidInputError(
                f"y must hold the labels of the model, {list(known)}",
                f"{list(labels)}",
                "Use a development set that holds every class.",
            )
