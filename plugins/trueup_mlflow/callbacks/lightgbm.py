"""The callback for LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightgbm import Booster

from trueup_mlflow.callbacks.reporter import Reporter

_LOSS_OF_OBJECTIVE = {
    "binary": "log_loss",
    "cross_entropy": "log_loss",
    "multiclass": "log_loss",
    "softmax": "log_loss",
    "poisson": "poisson_deviance",
}


class TrueupCallback:
    """Logs vanilla and calibrated loss of a validation set while LightGBM trains.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        Features of the validation rows.
    y : array-like of shape (n,)
        Labels as the booster knows them: 0 to k - 1, or targets.
    loss : str, optional
        A loss of :func:`trueup.evaluate`. By default the log loss for objectives of classes, the
        Poisson deviance for counts and the mean squared error for the others.
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
            objective = str(env.params.get("objective", "regression"))
            loss = self._loss or _LOSS_OF_OBJECTIVE.get(objective, "mean_squared_error")
            self._reporter.log(loss, lambda: self._predictions(env.model, loss), env.iteration)

    def _predictions(self, model: Booster, loss: str) -> Mapping[str, Any]:
        from_logits = loss in ("log_loss", "brier_score")
        predicted = model.predict(self._X, raw_score=from_logits)
        return {"y_true": self._y, "y_logit" if from_logits else "y_pred": predicted}
