"""The base class of the calibrators: it checks, encodes and stores; a calibrator fits and maps."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_consistent_length,
    column_or_1d,
)

from trueup.calibrators.scores import (
    Columns,
    FloatArray,
    check_columns,
    check_probabilities,
    check_weight,
)
from trueup.errors import InvalidInputError, NotFittedError

FieldArrays = dict[str, NDArray[Any]]


class Calibrator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose ``X`` holds the probabilities of another model.

    A subclass sets ``state_names``, the fitted attributes that :meth:`save` keeps, and says how to
    fit on checked probabilities and how to map them.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels; columns of ``X`` and of ``predict_proba`` are in this order.
    n_features_in_ : int
        Number of columns of ``X``.
    """

    state_names: ClassVar[tuple[str, ...]]
    multiclass: ClassVar[bool] = False

    @abstractmethod
    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:
        """Fit on probabilities (n,) or (n, k), class indices (n,), fields and weights."""

    @abstractmethod
    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        """Return calibrated probabilities in the shape of ``p``."""

    def fit(
        self, X: Any, y: Any, *, fields: Columns | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit the calibrator.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, k)
            Probabilities of the second class, or of each class.
        y : array-like of shape (n,)
            Labels of rows that the model was not trained on.
        fields : mapping from name to column, optional
            Values that the calibration may depend on; a calibrator that uses none ignores them.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights; integer weights equal repeated rows.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If an input has the wrong shape or range, or the labels don't match the columns.
        UndefinedMetricError
            If the labels determine no finite solution.
        """
        y = self._encode_labels(X, y)
        p = check_probabilities(X)
        weight = check_weight(sample_weight, len(y))
        self._check_classes(p)
        kept = weight > 0.0
        columns = {name: column[kept] for name, column in check_columns(fields, len(y)).items()}
        self._fit(p[kept], y[kept], columns, weight[kept])
        return self

    def predict_proba(self, X: Any, *, fields: Columns | None = None) -> FloatArray:
        """Return calibrated probabilities of shape (n, k), with sum 1.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, k)
            Probabilities, in the shape that was fitted.
        fields : mapping from name to column, optional
            The fields that were used in ``fit``; values that were not seen there get no correction
            of their own.

        Raises
        ------
        NotFittedError
            If ``fit`` has not been called.
        InvalidInputError
            If the input has the wrong shape or range, or a field is missing.
        """
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"{type(self).__name__} must be fitted before it predicts; got no fitted state. "
                "Call fit first."
            )
        p = check_probabilities(X)
        self._check_width(X)
        calibrated = self._calibrate(p, check_columns(fields, len(p)))
        if calibrated.ndim == 2:
            return calibrated
        return np.stack([1.0 - calibrated, calibrated], axis=1)

    def predict(self, X: Any, *, fields: Columns | None = None) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X, fields=fields).argmax(axis=1)])

    def save(self, path: str | Path) -> None:
        """Write the calibrator into the folder ``path`` as JSON and npz, without pickle."""
        from trueup.calibrators.storage import save_calibrator

        save_calibrator(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInputError
            If the folder holds a calibrator of another class.
        """
        from trueup.calibrators.storage import load_calibrator

        calibrator = load_calibrator(path)
        if not isinstance(calibrator, cls):
            raise InvalidInputError(
                f"path must hold a {cls.__name__}; got a {type(calibrator).__name__}. "
                "Use load_calibrator, which reads any of them."
            )
        return calibrator

    def _encode_labels(self, X: Any, y: Any) -> FloatArray:
        if y is None:
            raise InvalidInputError(
                f"y must be given, because {type(self).__name__} requires y to be passed, but the "
                "target y is None. Pass the labels."
            )
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        self._check_width(X, reset=True)
        self.classes_, index = np.unique(y, return_inverse=True)
        return index.astype(np.float64)

    def _check_width(self, X: Any, reset: bool = False) -> None:
        _check_feature_names(self, X, reset=reset)
        table = check_array(X, ensure_2d=False, dtype=None, ensure_all_finite=False)
        _check_n_features(self, table[:, None] if table.ndim == 1 else table, reset=reset)

    def _check_classes(self, p: FloatArray) -> None:
        n_classes, columns = len(self.classes_), 2 if p.ndim == 1 else p.shape[1]
        if n_classes != columns:
            raise InvalidInputError(
                f"y must hold {columns} classes, as many as X describes; got {n_classes} class"
                f"{'' if n_classes == 1 else 'es'}. Fit on rows that hold every class."
            )
        if columns > 2 and not self.multiclass:
            raise InvalidInputError(
                f"X must describe two classes, since {type(self).__name__} is binary; got {columns} "
                "columns. Use ShiftCalibrator, TemperatureCalibrator or NeuralCalibrator."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self.state_names)
