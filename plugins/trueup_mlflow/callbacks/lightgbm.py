"""The callback for LightGBM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from lightgbm import Booster

from trueup.errors import InvalidInputError
from trueup_mlflow.callbacks.reporter import (
    LOSSES_OF_LOGITS,
    Reporter,
    loss_of_objective,
    require_logits,
)

_LOSSES = {
    "binary": "log_loss",
    "cross_entropy": "log_loss",
    "multiclass": "log_loss",
    "regression": "mean_squared_error",
    "poisson": "poisson_deviance",
}
_NOT_LOGITS = ("multiclassova",)  # a sigmoid of each class, not a softmax over them
_ADDED_TO = ("regression",)  # objectives whose prediction is the score itself
_CV = (
    "lightgbm.cv is not covered: its models are scored on folds of their own. Call "
    "trueup_mlflow.log_evaluation with the predictions of each fold."
)


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
    init_score : float or array-like of shape (n,) or (n, k), optional
        What the validation scores start from, where the data sets have an ``init_score``: the
        model does not know it.
    **options
        Other keywords of :func:`trueup.evaluate`, such as ``sample_weight``.

    Notes
    -----
    The step is the index of the iteration. A failure of the evaluation is a warning and a tag of
    the run; the training goes on.

    Examples
    --------
    >>> import lightgbm
    >>> import mlflow
    >>> import numpy as np
    >>> from trueup_mlflow import LightGBMCallback
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> data = lightgbm.Dataset(X[:200], y[:200])
    >>> parameters = {"objective": "binary", "verbose": -1}
    >>> with mlflow.start_run() as run:
    ...     callback = LightGBMCallback(X[200:], y[200:])
    ...     model = lightgbm.train(parameters, data, 10, callbacks=[callback])
    >>> "calibrated_val_log_loss" in mlflow.get_run(run.info.run_id).data.metrics
    True
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
        init_score: Any = None,
        **options: Any,
    ) -> None:
        self._X = X
        self._init_score = init_score
        self._y = y
        self._loss = loss
        self._every = every
        self._reporter = Reporter(prefix, run_id, options=options)

    def __call__(self, env: Any) -> None:
        """Log after every so many iterations; LightGBM calls it."""
        is_last = env.iteration + 1 == env.end_iteration
        due = is_last or (env.iteration + 1) % self._every == 0
        if not isinstance(env.model, Booster):  # in cross-validation there are several models
            self._reporter.give_up(_CV)
        elif due:
            self._reporter.log(
                env.iteration,
                loss=lambda: (
                    self._loss or loss_of_objective(_Objective.of(env.model).name, _LOSSES)
                ),
                predict=lambda loss: self._predictions(env.model, loss),
            )

    def _predictions(self, model: Booster, loss: str) -> Mapping[str, Any]:
        objective = _Objective.of(model)
        require_logits(objective.name, loss, _NOT_LOGITS)
        start = self._start(model)
        if loss in LOSSES_OF_LOGITS:
            score = np.asarray(model.predict(self._X, raw_score=True))
            if objective.is_average:  # raw scores are sums over the trees of a forest
                score = score / model.current_iteration()
            return {"y_true": self._y, "y_logit": objective.slope * (score + start)}
        predicted = np.asarray(model.predict(self._X))
        if np.any(start) and objective.name not in _ADDED_TO:
            raise InvalidInputError(
                f"init_score must be left out where the objective is {objective.name!r}",
                "one",
                "Call trueup_mlflow.log_evaluation with the predictions.",
            )
        return {"y_true": self._y, "y_pred": predicted + start}

    def _start(self, model: Booster) -> Any:
        """Return what the scores start from, and refuse to guess it."""
        if self._init_score is not None:
            return np.asarray(self._init_score, dtype=np.float64)
        data = getattr(model, "train_set", None)
        if data is not None and data.get_init_score() is not None:
            raise InvalidInputError(
                "init_score must be given where the training set has one",
                "None",
                "Pass that of the validation rows to TrueupCallback.",
            )
        return 0.0


@dataclass(frozen=True)
class _Objective:
    """What a booster was trained for, the slope of its sigmoid, whether it averages trees."""

    name: str
    slope: float
    is_average: bool

    @classmethod
    def of(cls, model: Booster) -> _Objective:
        """Read the model itself: parameters have aliases, and an objective may be a function."""
        text = model.model_to_string(num_iteration=1)
        line = re.search(r"^objective=(.*)$", text, re.MULTILINE)
        name, *settings = line[1].split() if line else ("custom",)
        slopes = [float(one.partition(":")[2]) for one in settings if one.startswith("sigmoid:")]
        is_average = re.search(r"^average_output$", text, re.MULTILINE) is not None
        return cls(name, slopes[0] if slopes else 1.0, is_average)


LightGBMCallback = TrueupCallback
"""The callback under the name that it has in :mod:`trueup_mlflow`."""
