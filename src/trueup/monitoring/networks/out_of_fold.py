"""Predictions for rows that the model did not see, by refitting it five-fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.monitoring.inputs import FloatArray, finite_vector

FOLDS = 5


def is_refittable(model: Any) -> bool:
    """Return whether the model can be fitted and can predict, as scikit-learn's estimators."""
    return callable(getattr(model, "fit", None)) and callable(getattr(model, "predict", None))


def out_of_fold_predictions(
    model: Any, X: Any, y_true: FloatArray, *, probability: bool, random_state: int
) -> FloatArray:
    """Return the prediction of each row, (n,), by a clone that was fitted on the other four folds.

    With ``probability`` it is that of class 1, where the model can give it.
    """
    from sklearn.base import clone
    from sklearn.model_selection import KFold
    from sklearn.utils import _safe_indexing

    predictions = np.empty(len(y_true))
    folds = KFold(FOLDS, shuffle=True, random_state=random_state)
    for seen, unseen in folds.split(y_true[:, None]):
        refitted = clone(model, safe=False)
        refitted.fit(_safe_indexing(X, seen), y_true[seen])
        predictions[unseen] = _predict(refitted, _safe_indexing(X, unseen), probability)
    return predictions


def _predict(model: Any, X: Any, probability: bool) -> FloatArray:
    if probability and hasattr(model, "predict_proba"):
        return finite_vector("prediction of the model", np.asarray(model.predict_proba(X))[:, 1])
    return finite_vector("prediction of the model", model.predict(X))
