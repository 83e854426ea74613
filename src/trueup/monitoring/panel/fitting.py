"""Which members a labelled reference allows, and their fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.monitoring.inputs import FloatArray, finite_vector
from trueup.monitoring.metrics import SquaredForm
from trueup.monitoring.one_step import OneStepCheckModel
from trueup.monitoring.panel.direct_loss import DirectLossEstimator
from trueup.monitoring.panel.disagreement import fit_disagreement, training_epochs
from trueup.monitoring.panel.members import TRAINING_ONLY, Panel, Reference
from trueup.monitoring.trust.support import sample_positions

_MAX_ROWS = 20_000
_OFFSET_ROWS = 5_000


@dataclass(frozen=True)
class Labelled:
    """Labelled rows: encoded features (n, d), the rest of shape (n,).

    ``unseen`` are predictions of the model, or of clones of it, that did not see the row;
    ``trained`` says whether the model itself has seen them.
    """

    x: FloatArray
    y_pred: FloatArray
    unseen: FloatArray
    y_true: FloatArray
    trained: bool
    form: SquaredForm

    @property
    def labels(self) -> FloatArray:
        """Labels whose squared error is the loss of the unseen predictions."""
        return self.form.labels(self.y_true, self.unseen)

    @property
    def errors(self) -> FloatArray:
        return np.asarray((self.labels - self.unseen) ** 2)


def fit_training_panel(
    x: FloatArray, y_pred: FloatArray, y_true: FloatArray, random_state: int
) -> Panel:
    """Fit L to training errors."""
    check = _check("l", "plain", x, random_state).fit_encoded(x, y_pred, y_true)
    return Panel({TRAINING_ONLY: check})


def fit_panel(rows: Labelled, random_state: int) -> Panel:
    """Fit the members for a numeric target."""
    disagreement, squared = fit_disagreement(rows.x, rows.unseen, rows.y_true, random_state)
    checks = _fit_checks(rows, random_state)
    return Panel(checks, _reference(rows, squared, random_state), disagreement)


def fit_binary_panel(rows: Labelled, random_state: int) -> tuple[Panel, tuple[str, ...]]:
    """Fit the members for labels in {0, 1}; return also which were left out and why."""
    check = _check("k", "offset", rows.x, random_state)
    checks = {"one_step_offset": check.fit_encoded(rows.x, rows.unseen, rows.labels)}
    skipped: tuple[str, ...] = ()
    direct = None
    try:
        direct = DirectLossEstimator(random_state).fit(rows.x, rows.unseen, rows.errors)
    except ImportError as error:
        skipped = (f"direct_loss left out: {error}",)
    reference = _reference(rows, np.zeros(len(rows.x)), random_state)
    return Panel(checks, reference, direct=direct), skipped


def reference_positions(n: int, random_state: int) -> NDArray[np.intp]:
    """Return which of n reference rows the panel keeps."""
    return sample_positions(n, _MAX_ROWS, random_state)


def _reference(rows: Labelled, disagreement: FloatArray, random_state: int) -> Reference:
    kept = reference_positions(len(rows.x), random_state)
    return Reference(rows.x[kept], rows.errors[kept], disagreement[kept])


def _fit_checks(rows: Labelled, random_state: int) -> dict[str, OneStepCheckModel]:
    x, checks = rows.x, {}
    large = len(x) >= _OFFSET_ROWS
    if large or not rows.trained:
        check = _check("k", "offset", x, random_state)
        checks["one_step_offset"] = check.fit_encoded(x, rows.unseen, rows.labels)
    if not large:
        check = _check("k_star", "plain", x, random_state)
        checks["one_step"] = check.fit_encoded(x, rows.unseen, rows.labels)
    if rows.trained:
        check = _check("k_star", "plain", x, random_state)
        labels = rows.form.labels(rows.y_true, rows.y_pred)
        checks["one_step_train"] = check.fit_encoded(x, rows.y_pred, labels)
    return checks


def _check(
    objective: Literal["k", "k_star", "l"],
    head: Literal["plain", "offset"],
    x: FloatArray,
    random_state: int,
) -> OneStepCheckModel:
    epochs = training_epochs(len(x))
    return OneStepCheckModel(objective, head, epochs=epochs, random_state=random_state)


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
