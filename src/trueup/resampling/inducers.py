"""What turns a training set into predictions: an estimator or a training function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from trueup.errors import InvalidInputError
from trueup.read.columns import as_array
from trueup.resampling.measures import Measure
from trueup.resampling.strategies import IndexArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Predicted:
    """Predictions on one test set, and what a tuner selected on its training set."""

    train: IndexArray
    test: IndexArray
    y_pred: Array
    selected: Mapping[str, Any]


Induce = Callable[[Any, Any, IndexArray], Any]
"""``induce(X_train, y_train, train)`` returns a fitted estimator or a prediction function."""


def check_inducer(inducer: Any, rule: str, fix: str) -> None:
    """Refuse what can't be trained: neither an estimator nor callable."""
    if isinstance(inducer, type) or not (hasattr(inducer, "fit") or callable(inducer)):
        raise InvalidInputError(rule, repr(inducer), fix)


def train(inducer: Any, X: Any, y: Any) -> Any:
    """Return a model trained on these rows; the inducer itself stays as it is."""
    if hasattr(inducer, "fit"):
        return clone(inducer).fit(X, y)
    return inducer(X, y)


def predict_split(
    induce: Induce,
    X: Any,
    y: Any,
    pair: tuple[IndexArray, IndexArray],
    measure: Measure,
) -> Predicted:
    """Train on one training set and predict its test set; nothing else of the data is seen."""
    seen, unseen = pair
    model = induce(_safe_indexing(X, seen), _safe_indexing(y, seen), seen)
    y_pred = _respond(model, _safe_indexing(X, unseen), measure)
    if y_pred.shape[:1] != unseen.shape:
        raise InvalidInputError(
            f"predictions must be one for each test row ({len(unseen)})",
            f"shape {y_pred.shape}",
            "Check what the inducer returns.",
        )
    return Predicted(seen, unseen, y_pred, dict(getattr(model, "best_params_", {})))


def is_classifying(inducer: Any) -> bool:
    """Return whether the inducer is a classifier of scikit-learn's kind."""
    return hasattr(inducer, "fit") and bool(is_classifier(inducer))


def _respond(model: Any, X: Any, measure: Measure) -> Array:
    if not hasattr(model, "predict"):
        if not callable(model):
            raise InvalidInputError(
                "a training function must return a model or a function of X",
                repr(model),
                "Return the function that predicts.",
            )
        return as_array(model(X), "y_pred")
    response = _best_score(model) if measure.response == "score" else measure.response
    if not hasattr(model, response):
        raise InvalidInputError(
            f"inducer must have {response} for {measure.name}",
            f"{type(model).__name__}",
            "Use an estimator of probabilities, or another loss.",
        )
    values = np.asarray(getattr(model, response)(X))
    if response == "predict_proba" and measure.classes is not None:
        values = _all_columns(values, getattr(model, "classes_", measure.classes), measure.classes)
    return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values


def _best_score(model: Any) -> str:
    names = ("predict_proba", "decision_function", "predict")
    return next(name for name in names if hasattr(model, name))


def _all_columns(proba: Array, known: Any, classes: Array) -> Array:
    """Give a class that the training set lacked the probability zero."""
    if len(known) == len(classes):
        return proba
    full = np.zeros((len(proba), len(classes)))
    full[:, np.searchsorted(classes, np.asarray(known))] = proba
    return full
