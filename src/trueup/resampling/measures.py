"""What is measured on a test set: a loss per row, or a measure of the set as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.evaluation.evaluate import evaluate
from trueup.losses import LOSSES, Loss, get_loss
from trueup.read.rows import read_rows
from trueup.resampling.positive import check_labels, check_positive, says_positive, takes_positive
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
    Where ``names_positive`` is False, nothing says which of the two classes is positive.
    """

    name: str
    response: str
    classes: Array | None = None
    loss: Loss | None = None
    function: SetFunction | None = None
    greater_is_better: bool | None = False
    names_positive: bool = True

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


def read_measure(loss: Any, y: Array, labels: Sequence[Any] | None = None) -> Measure:
    """Return the measure of a name, a Loss, or a function ``measure(y_true, y_score)``.

    ``labels`` are the classes, the positive one last. Refused are unknown names, labels that do not
    fit the measure, and a measure that would have to guess which class is positive.
    """
    if not isinstance(loss, (str, Loss)):
        return _of_function(loss, y, labels)
    ranks = isinstance(loss, str) and loss in _RANK_MEASURES
    if not ranks and (not isinstance(loss, str) or loss in LOSSES):
        return _loss_measure(loss, y, labels)
    if not ranks:
        raise InvalidInputError(f"loss must be {_KNOWN}", repr(loss), "Check the spelling.")
    classes = _classes(y, labels)
    if len(classes) != 2:
        raise InvalidInputError(
            f"y must hold two classes for {loss}",
            f"{len(classes)}",
            "Pass a function measure(y_true, y_score) for more.",
        )
    if labels is None and loss == "average_precision":
        check_positive(loss, y, _FIX_POSITIVE)
    return replace(_ranked(loss, classes), names_positive=labels is not None or says_positive(y))


_FIX_POSITIVE = "Pass labels=[negative, positive]."


def _of_function(loss: Any, y: Array, labels: Sequence[Any] | None) -> Measure:
    """Return the measure of a function, which gets 0 and 1 where the classes are named."""
    if not callable(loss):
        raise InvalidInputError(f"loss must be {_KNOWN}", repr(loss), "Check the spelling.")
    name = getattr(loss, "__name__", type(loss).__name__)
    greater = getattr(loss, "greater_is_better", _direction(name))
    if labels is None:
        if takes_positive(loss, {}):
            check_positive(name, y, _FIX_POSITIVE)
        return Measure(name, "score", function=loss, greater_is_better=greater)
    classes = _classes(y, labels)

    def function(y: Array, y_pred: Array) -> float:
        return float(loss(np.argmax(y[:, None] == classes, axis=1), y_pred))

    return Measure(name, "score", classes, function=function, greater_is_better=greater)


def _direction(name: str) -> bool | None:
    """Return the direction that scikit-learn's rule of naming gives to a function."""
    if name.endswith(("_loss", "_error", "_deviance")):
        return False
    return True if name.endswith("_score") else None


_KNOWN = f"one of {sorted((*LOSSES, *_RANK_MEASURES))}, a Loss or a function"


def _loss_measure(loss: str | Loss, y: Array, labels: Sequence[Any] | None) -> Measure:
    chosen = get_loss(loss)
    if chosen.task in ("binary", "multiclass"):
        named = labels is not None or says_positive(y)
        classes = _classes(y, labels)
        return Measure(chosen.name, "predict_proba", classes, chosen, names_positive=named)
    if labels is not None:
        raise InvalidInputError(
            f"labels must be left out with loss {chosen.name!r}", repr(labels), "Drop the argument."
        )
    return Measure(chosen.name, "predict", loss=chosen)


def _classes(y: Array, labels: Sequence[Any] | None) -> Array:
    """Return the classes in the order of the columns of probabilities."""
    try:
        found = np.unique(y)
    except TypeError:
        raise InvalidInputError(
            "y must hold labels of one type", f"dtype {y.dtype}", "Drop or fix the rows."
        ) from None
    if len(found) < 2:
        raise InvalidInputError(
            "y must hold at least two classes", "1 class", "Pass rows of each class."
        )
    return found if labels is None else check_labels(y, labels)
