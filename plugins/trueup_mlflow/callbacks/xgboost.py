"""The callback for XGBoost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from xgboost import Booster, DMatrix
from xgboost.callback import TrainingCallback

from trueup_mlflow.callbacks.reporter import (
    LOSSES_OF_LOGITS,
    Reporter,
    loss_of_objective,
    require_logits,
)

_LOSSES = {
    "binary:logistic": "log_loss",
    "binary:logitraw": "log_loss",
    "multi:softmax": "log_loss",
    "multi:softprob": "log_loss",
    "reg:squarederror": "mean_squared_error",
    "count:poisson": "poisson_deviance",
}
_NOT_LOGITS = ("binary:hinge",)
_CV = (
    "xgboost.cv is not covered: its models are scored on folds of their own. Call "
    "trueup_mlflow.log_evaluation with the predictions of each fold."
)


class TrueupCallback(TrainingCallback):
    """Logs vanilla and calibrated loss of a validation set while XGBoost trains.

    Parameters
    ----------
    data : xgboost.DMatrix
        Validation rows with labels, and weights if there are any.
    loss : str, optional
        A loss of :func:`trueup.evaluate`; "log_loss" and "brier_score" read the margins as logits.
        By default the log loss for binary:logistic, binary:logitraw, multi:softmax and
        multi:softprob, the mean squared error for reg:squarederror and the Poisson deviance for
        count:poisson; it must be given for any other objective. Give it for an objective of your
        own (``obj=``) too: XGBoost calls such a model reg:squarederror.
    every : int, optional
        Log after every so many iterations as well; by default only at the end, where the
        evaluation is that of the best iteration if training was stopped early.
    prefix : str, default "val_"
        Put before the loss in each key.
    run_id : str, optional
        The run; the active run by default.
    **options
        Other keywords of :func:`trueup.evaluate`.

    Notes
    -----
    The step is the index of the iteration. A failure of the evaluation is a warning and a tag of
    the run; the training goes on.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import xgboost
    >>> from trueup_mlflow import XGBoostCallback
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> rows, held_out = xgboost.DMatrix(X[:200], y[:200]), xgboost.DMatrix(X[200:], y[200:])
    >>> with mlflow.start_run() as run:
    ...     callback = XGBoostCallback(held_out)
    ...     model = xgboost.train({"objective": "binary:logistic"}, rows, 10, callbacks=[callback])
    >>> "calibrated_val_log_loss" in mlflow.get_run(run.info.run_id).data.metrics
    True
    """

    def __init__(
        self,
        data: DMatrix,
        *,
        loss: str | None = None,
        every: int | None = None,
        prefix: str = "val_",
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._data = data
        self._loss = loss
        self._every = every
        self._reporter = Reporter(prefix, run_id, options=options)
        self._last_step: int | None = None

    def after_iteration(self, model: Any, epoch: int, _evals_log: Any) -> bool:
        """Log after every so many iterations; never stop the training."""
        if not isinstance(model, Booster):  # in cross-validation there are several models
            self._reporter.give_up(_CV)
        elif self._every is not None and (epoch + 1) % self._every == 0:
            self._log(model, epoch)
        return False

    def after_training(self, model: Any) -> Any:
        """Log the final model, or the best iteration."""
        if isinstance(model, Booster):
            best = model.attr("best_iteration")
            step = model.num_boosted_rounds() - 1 if best is None else int(best)
            if step != self._last_step:
                self._log(model, step)
        return model

    def _log(self, model: Booster, step: int) -> None:
        self._last_step = step
        self._reporter.log(
            step,
            loss=lambda: self._loss or loss_of_objective(_objective(model), _LOSSES),
            predict=lambda loss: self._predictions(model, loss, step),
        )

    def _predictions(self, model: Booster, loss: str, step: int) -> Mapping[str, Any]:
        require_logits(_objective(model), loss, _NOT_LOGITS)
        from_logits = loss in LOSSES_OF_LOGITS
        predicted = model.predict(
            self._data, output_margin=from_logits, iteration_range=(0, step + 1)
        )
        weight = self._data.get_weight()
        return {
            "y_true": self._data.get_label(),
            "y_logit" if from_logits else "y_pred": predicted.astype(np.float64),
            "sample_weight": weight if weight.size else None,
        }


def _objective(model: Booster) -> str:
    return str(json.loads(model.save_config())["learner"]["objective"]["name"])


XGBoostCallback = TrueupCallback
"""The callback under the name that it has in :mod:`trueup_mlflow`."""
