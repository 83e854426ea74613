"""What is measured on a test set: a loss per row, or a measure of the set as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.evaluation.evaluate import evaluate
from trueup.losses import LOSSES, Loss, get_loss
from trueup.read.rows import read_rows
from trueup.resampling.strategies import IndexArray
from trueup.splits import Split

Array = NDArray[Any]
SetFunction = Callable[[Any, Any], float]

_RANK_MEASURES: dict[str, SetFunction] = {
    "average_precision": average_precision_score,
    "roc_auc": roc_auc_score,
}


class Measure(ABC):
    """A number for the labels and predictions of a set of rows."""

    name: str
    response: str
    greater_is_better: bool | None = False
    point_wise: bool = True
    classes: Array | None = None

    @abstractmethod
    def values(
        self, y: Array, y_pred: Array, rows: IndexArray, split: Split | None
    ) -> tuple[float, float | None]:
        """Return the vanilla value and, where a split is given, the calibrated one."""


class LossMeasure(Measure):
    """The mean of a loss; its calibrated value fits a bias on the rows of the set."""

    def __init__(self, loss: Loss, classes: Array | None) -> None:
        self.loss, self.classes, self.name = loss, classes, loss.name
        self.response = "predict" if classes is None else "predict_proba"

    def values(
        self, y: Array, y_pred: Array, rows: IndexArray, split: Split | None
    ) -> tuple[float, float | None]:
        labels = None if self.classes is None else self.classes.tolist()
        if split is None:
            return self._vanilla(y, y_pred, labels), None
        result = evaluate(y, y_pred, loss=self.loss, split=split, labels=labels, row_id=rows)
        return result.vanilla, result.calibrated

    def _vanilla(self, y: Array, y_pred: Array, labels: list[Any] | None) -> float:
        rows = read_rows(y, y_pred, loss=self.loss, labels=labels)
        return float(rows.loss.values(rows.y_true, rows.margin).mean())


class SetMeasure(Measure):
    """A measure of the set as a whole, such as AUC: it has no value per row and no bias term."""

    response = "score"
    point_wise = False

    def __init__(self, name: str, function: SetFunction, greater_is_better: bool | None) -> None:
        self.name, self.function, self.greater_is_better = name, function, greater_is_better

    def values(
        self,
        y: Array,
        y_pred: Array,
        rows: IndexArray,  # noqa: ARG002
        split: Split | None,  # noqa: ARG002
    ) -> tuple[float, None]:
        value = float(self.function(y, y_pred))
        if not np.isfinite(value):
            raise UndefinedMetricError(f"{self.name} must be finite", str(value), str(_FIX_SET))
        return value, None


class RankMeasure(SetMeasure):
    """A ranking measure of two classes, which both must be in the set."""

    def __init__(self, name: str, classes: Array) -> None:
        super().__init__(name, _RANK_MEASURES[name], greater_is_better=True)
        self.classes, self._positive = classes, classes[1]

    def values(
        self, y: Array, y_pred: Array, rows: IndexArray, split: Split | None
    ) -> tuple[float, None]:
        positive = y == self._positive
        if positive.all() or not positive.any():
            raise UndefinedMetricError(
                f"y must hold both classes for {self.name}", f"one in {len(y)} rows", str(_FIX_SET)
            )
        return super().values(positive, y_pred, rows, split)


_FIX_SET = 'Use stratified folds, or aggregate="pool".'


def read_measure(loss: Any, y: Array) -> Measure:
    """Return the measure of a name, a Loss, or a function ``measure(y_true, y_score)``.

    Refused are unknown names, and labels that do not fit the measure.
    """
    if isinstance(loss, str) and loss in _RANK_MEASURES:
        classes = _classes(y)
        if len(classes) != 2:
            raise InvalidInputError(
                f"y must hold two classes for {loss}",
                f"{len(classes)}",
                "Pass a function measure(y_true, y_score) for more.",
            )
        return RankMeasure(loss, classes)
    if isinstance(loss, (str, Loss)):
        return _loss_measure(loss, y)
    if not callable(loss):
        raise InvalidInputError(f"loss must be {_KNOWN}", repr(loss), "Check the spelling.")
    name = getattr(loss, "__name__", type(loss).__name__)
    return SetMeasure(name, loss, getattr(loss, "greater_is_better", _direction(name)))


def _direction(name: str) -> bool | None:
    """Return the direction that scikit-learn's rule of naming gives to a function."""
    if name.endswith(("_loss", "_error", "_deviance")):
        return False
    return True if name.endswith("_score") else None


_KNOWN = f"one of {sorted((*LOSSES, *_RANK_MEASURES))}, a Loss or a function"


def _loss_measure(loss: str | Loss, y: Array) -> Measure:
    if isinstance(loss, str) and loss not in LOSSES:
        raise InvalidInputError(f"loss must be {_KNOWN}", repr(loss), "Check the spelling.")
    chosen = get_loss(loss)
    probabilities = chosen.task in ("binary", "multiclass")
    return LossMeasure(chosen, _classes(y) if probabilities else None)


def _classes(y: Array) -> Array:
    try:
        classes = np.unique(y)
    except TypeError:
        raise InvalidInputError(
            "y must hold labels of one type", f"dtype {y.dtype}", "Drop or fix the rows."
        ) from None
    if len(classes) < 2:
        raise InvalidInputError(
            "y must hold at least two classes", "1 class", "Pass rows of each class."
        )
    return classes
