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
    if hasattr(model, "predict"):
        response = _best_score(model) if measure.response == "score" else measure.response
        if not hasattr(model, response):
            raise InvalidInputError(
                f"inducer must have {response} for {measure.name}",
                f"{type(model).__name__}",
                "Use an estimator of probabilities, or another loss.",
            )
        values = np.asarray(getattr(model, response)(X))
    elif callable(model):
        response, values = "call", as_array(model(X), "y_pred")
    else:
        raise InvalidInputError(
            "a training function must return a model or a function of X",
            repr(model),
            "Return the function that predicts.",
        )
    known = getattr(model, "classes_", None)
    if measure.classes is not None and known is not None:
        values = _in_order(values, response, known, measure.classes)
    if values.ndim == 1 and known is None and not measure.names_positive:
        _refuse_one_column(measure)
    return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values


def _refuse_one_column(measure: Measure) -> None:
    assert measure.classes is not None
    raise InvalidInputError(
        "labels must name the classes, the positive one last, for predictions of one column",
        f"y of {', '.join(map(repr, measure.classes.tolist()))}",
        "Pass labels=[negative, positive], or y as 0 and 1.",
    )


def _best_score(model: Any) -> str:
    names = ("predict_proba", "decision_function", "predict")
    return next(name for name in names if hasattr(model, name))


def _in_order(values: Array, response: str, known: Any, classes: Array) -> Array:
    """Bring what a model says of its classes into our order of them.

    A class that its training set lacked gets the probability zero.
    """
    names, order = np.asarray(known).tolist(), classes.tolist()
    if names == order:
        return values
    if response == "decision_function" and values.ndim == 1:
        return -values if names == order[::-1] else values
    if response != "predict_proba" or values.ndim != 2:
        return values
    if not set(names) <= set(order):
        raise InvalidInputError(
            f"classes_ of the model must be those of y, {order}", f"{names}", "Train on y as it is."
        )
    full = np.zeros((len(values), len(order)))
    full[:, [order.index(name) for name in names]] = values
    return full
