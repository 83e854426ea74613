"""The callback for LightGBM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from lightgbm import Booster

from trueup_mlflow.callbacks.objectives import LOSSES_OF_LOGITS, loss_of_objective, require_logits
from trueup_mlflow.callbacks.reporter import Reporter

_LOSSES = {
    "binary": "log_loss",
    "cross_entropy": "log_loss",
    "multiclass": "log_loss",
    "regression": "mean_squared_error",
    "poisson": "poisson_deviance",
}
_NOT_LOGITS = ("multiclassova",)  # a sigmoid of each class, not a softmax over them


class TrueupCallback:
    """Logs vanilla and calibrated loss of a validation set while LightGBM trains.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        Features of the validation rows.
    y : array-like of shape (n,)
        Labels as the booster knows them: 0 to k - 1, or targets.
    loss : str, optional
        A loss of :func:`trueup.evaluate`; "log_loss" and "brier_score" read the raw scores as
        logits. By default the log loss for the objectives binary, cross_entropy and multiclass,
        the mean squared error for regression (L2) and the Poisson deviance for poisson; it must be
        given for any other objective.
    every : int, default 10
        Log after every so many iterations, and after the last one that was asked for. LightGBM does
        not tell a callback that training was stopped early.
    prefix : str, default "val_"
        Put before the loss in each key.
    run_id : str, optional
        The run; the active run by default.
    **options
        Other keywords of :func:`trueup.evaluate`, such as ``sample_weight``.

    Notes
    -----
    The step is the index of the iteration. A failure of the evaluation is a warning and a tag of
    the run; the training goes on.

    Examples
    --------
    ``lightgbm.train(params, train_set, callbacks=[TrueupCallback(X_val, y_val)])``
    """

    before_iteration = False
    order = 25  # before early stopping, which ends the round of callbacks

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: str | None = None,
        every: int = 10,
        prefix: str = "val_",
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        self._X = X
        self._y = y
        self._loss = loss
        self._every = every
        self._reporter = Reporter(prefix, run_id, options=options)

    def __call__(self, env: Any) -> None:
        """Log after every so many iterations; LightGBM calls it."""
        is_last = env.iteration + 1 == env.end_iteration
        due = is_last or (env.iteration + 1) % self._every == 0
        if due and isinstance(env.model, Booster):  # in cross-validation there are several models
            self._reporter.log(
                env.iteration,
                loss=lambda: self._choose_loss(env.model),
                predict=lambda loss: self._predictions(env.model, loss),
            )

    def _choose_loss(self, model: Booster) -> str:
        return self._loss or loss_of_objective(_Objective.of(model).name, _LOSSES)

    def _predictions(self, model: Booster, loss: str) -> Mapping[str, Any]:
        objective = _Objective.of(model)
        require_logits(objective.name, loss, _NOT_LOGITS)
        if loss not in LOSSES_OF_LOGITS:
            return {"y_true": self._y, "y_pred": model.predict(self._X)}
        score = np.asarray(model.predict(self._X, raw_score=True))
        return {"y_true": self._y, "y_logit": objective.slope * score}


@dataclass(frozen=True)
class _Objective:
    """What a booster was trained for, under LightGBM's own name, and the slope of its sigmoid."""

    name: str
    slope: float

    @classmethod
    def of(cls, model: Booster) -> _Objective:
        """Read the model itself: parameters have aliases, and an objective may be a function."""
        line = re.search(r"^objective=(.*)$", model.model_to_string(num_iteration=1), re.MULTILINE)
        name, *settings = line[1].split() if line else ("custom",)
        slopes = [float(text.partition(":")[2]) for text in settings if text.startswith("sigmoid:")]
        return cls(name, slopes[0] if slopes else 1.0)
