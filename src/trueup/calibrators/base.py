"""The base class of the calibrators: it checks, encodes and stores; a calibrator fits and maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_consistent_length,
    column_or_1d,
)

from trueup.calibrators.inputs import (
    Columns,
    FieldArrays,
    FloatArray,
    check_columns,
    check_probabilities,
    check_weight,
)
from trueup.errors import InvalidInputError, NotFittedError, UndefinedMetricError
from trueup.read.columns import refuse_missing
from trueup.read.frames import require_one_order


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight, checked: probabilities (n,) or (n, k), and class indices.

    ``kept`` says which of the given rows they are.
    """

    p: FloatArray
    y: FloatArray
    fields: FieldArrays
    weight: FloatArray
    kept: NDArray[np.bool_]


class _NotFittedError(NotFittedError, SklearnNotFittedError):
    """Raised for callers that catch trueup's error or scikit-learn's."""


class Calibrator(ClassifierMixin, BaseEstimator):
    """A classifier whose ``X`` holds the probabilities of another model.

    A subclass sets ``state_names``, the fitted attributes that :meth:`save` keeps, and says how to
    fit on checked probabilities and how to map them.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels; columns of ``X`` and of ``predict_proba`` are in this order.
    n_features_in_ : int
        Number of columns of ``X``.

    Examples
    --------
    >>> from trueup.calibrators import Calibrator, PlattCalibrator
    >>> issubclass(PlattCalibrator, Calibrator)
    True
    """

    state_names: ClassVar[tuple[str, ...]]
    multiclass: ClassVar[bool] = False

    @property
    def fields_read_(self) -> tuple[str, ...]:
        """Names of the fields that ``predict_proba`` needs."""
        return tuple(getattr(self, "levels_", ()))

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
            Non-negative weights; integer weights equal repeated rows. What holds a calibrator
            back where rows are few counts rows, so don't scale weights to a sum of 1.

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
        rows = self._checked_rows(X, y, fields, sample_weight)
        self._fit(rows.p, rows.y, rows.fields, rows.weight)
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
            raise _NotFittedError(
                f"{type(self).__name__} must be fitted before it predicts",
                "no fitted state",
                "Call fit first.",
            )
        self._check_width(X)
        p = check_probabilities(X)
        calibrated = self._calibrate(p, check_columns(fields, len(p)))
        if calibrated.ndim == 2:
            return calibrated
        return np.stack([1.0 - calibrated, calibrated], axis=1)

    def predict(self, X: Any, *, fields: Columns | None = None) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,)."""
        most_probable = self.predict_proba(X, fields=fields).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])

    def save(self, path: str | Path) -> None:
        """Write the calibrator into the folder ``path`` as JSON and npz, without pickle."""
        from trueup.calibrators import save_calibrator

        save_calibrator(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInputError
            If the folder holds a calibrator of another class.
        """
        from trueup.calibrators import load_calibrator

        calibrator = load_calibrator(path)
        if not isinstance(calibrator, cls):
            raise InvalidInputError(
                f"path must hold a {cls.__name__}",
                f"a {type(calibrator).__name__}",
                "Use load_calibrator, which reads any of them.",
            )
        return calibrator

    def _checked_rows(self, X: Any, y: Any, fields: Columns | None, sample_weight: Any) -> Rows:
        others = fields if isinstance(fields, Mapping) else {}
        require_one_order({"X": X, "y": y, "sample_weight": sample_weight, **others})
        y = self._encode_labels(X, y)
        p = check_probabilities(X)
        weight = check_weight(sample_weight, len(y))
        kept = weight > 0.0
        self._check_classes(2 if p.ndim == 1 else p.shape[1], y[kept])
        columns = {name: column[kept] for name, column in check_columns(fields, len(y)).items()}
        return Rows(p[kept], y[kept], columns, weight[kept], kept)

    def _encode_labels(self, X: Any, y: Any) -> FloatArray:
        if y is None:
            raise InvalidInputError(
                f"y must be given, because {type(self).__name__} requires y to be passed, but the "
                "target y is None. Pass the labels."
            )
        if hasattr(y, "__array__") and type(y) is not np.ndarray:
            refuse_missing(y, np.asarray(y), "y")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(X, y)
        self._check_width(X, reset=True)
        self.classes_, index = np.unique(y, return_inverse=True)
        return index.astype(np.float64)

    def _check_width(self, X: Any, reset: bool = False) -> None:
        _check_feature_names(self, X, reset=reset)
        table = check_array(X, ensure_2d=False, dtype=None, ensure_all_finite=False)
        if table.ndim == 1 and not reset and self.n_features_in_ > 1:
            raise InvalidInputError(
                f"X must have {self.n_features_in_} columns, as in fit",
                "a vector",
                "Reshape your data: one row per prediction, one column per class.",
            )
        _check_n_features(self, table[:, None] if table.ndim == 1 else table, reset=reset)

    def _check_classes(self, columns: int, y: FloatArray) -> None:
        n_classes, weighted = len(self.classes_), len(np.unique(y))
        if n_classes > 2 and not self._takes_multiclass():
            raise InvalidInputError(
                "y must hold two classes",
                str(n_classes),
                (
                    f"Only binary classification is supported by {type(self).__name__}. Use "
                    "ShiftCalibrator, TemperatureCalibrator or NeuralCalibrator."
                ),
            )
        if n_classes > columns:
            raise InvalidInputError(
                f"y must hold {columns} classes, as X does",
                str(n_classes),
                "Pass one column of probabilities per class.",
            )
        if weighted < columns:
            raise UndefinedMetricError(
                f"y must hold {columns} classes with positive weight",
                f"{weighted} class{'' if weighted == 1 else 'es'}",
                "Fit on rows that hold every class.",
            )

    def _takes_multiclass(self) -> bool:
        return self.multiclass

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self.state_names)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_multiclass()
        tags.classifier_tags.poor_score = True  # it calibrates a classifier and is none itself
        return tags
