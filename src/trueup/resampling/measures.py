"""What is measured on a test set: a loss per row, or a measure of the set as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measure:
    """A number for the labels and predictions of a set of rows.

    It is the mean of a ``loss``, whose calibrated value fits a bias on the rows of the set, or a
    ``function`` of the set as a whole, such as AUC: that has no value per row and no bias term.
    ``response`` is the method of a model that it takes; ``classes`` are None where y is a number.
    """

    name: str
    response: str
    classes: Array | None = None
    loss: Loss | None = None
    function: SetFunction | None = None
    greater_is_better: bool | None = False

    @property
    def point_wise(self) -> bool:
        """Whether each row has a value."""
        return self.loss is not None

    def values(
        self, y: Array, y_pred: Array, rows: IndexArray, split: Split | None
    ) -> tuple[float, float | None]:
        """Return the vanilla value and, where a split is given, the calibrated one."""
        labels = None if self.classes is None else self.classes.tolist()
        if self.function is not None:
            value = float(self.function(y, y_pred))
            if not np.isfinite(value):
                raise UndefinedMetricError(f"{self.name} must be finite", str(value), _FIX_SET)
            return value, None
        assert self.loss is not None
        if split is None:
            checked = read_rows(y, y_pred, loss=self.loss, labels=labels)
            return float(checked.loss.values(checked.y_true, checked.margin).mean()), None
        result = evaluate(y, y_pred, loss=self.loss, split=split, labels=labels, row_id=rows)
        return result.vanilla, result.calibrated


def _ranked(name: str, classes: Array) -> Measure:
    """Return a ranking measure of two classes, which both must be in the set."""

    def function(y: Array, y_pred: Array) -> float:
        positive = y == classes[1]
        if positive.all() or not positive.any():
            raise UndefinedMetricError(
                f"y must hold both classes for {name}", f"one in {len(y)} rows", _FIX_SET
            )
        return _RANK_MEASURES[name](positive, y_pred)

    return Measure(name, "score", classes, function=function, greater_is_better=True)


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
        return _ranked(loss, classes)
    if isinstance(loss, (str, Loss)):
        return _loss_measure(loss, y)
    if not callable(loss):
        raise InvalidInputError(f"loss must be {_KNOWN}", repr(loss), "Check the spelling.")
    name = getattr(loss, "__name__", type(loss).__name__)
    greater = getattr(loss, "greater_is_better", _direction(name))
    return Measure(name, "score", function=loss, greater_is_better=greater)


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
    if chosen.task in ("binary", "multiclass"):
        return Measure(chosen.name, "predict_proba", _classes(y), chosen)
    return Measure(chosen.name, "predict", loss=chosen)


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
