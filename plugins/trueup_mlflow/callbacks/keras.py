"""The callback for Keras 3.

It imports nothing of Keras, which asks for its backend at import: what ``fit`` wants of a callback
is a few methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup_mlflow.callbacks.reporter import LOSSES_OF_LOGITS, Reporter, loss_of_objective

_LOSSES = {
    "binary_crossentropy": "log_loss",
    "categorical_crossentropy": "log_loss",
    "sparse_categorical_crossentropy": "log_loss",
    "mse": "mean_squared_error",
    "mean_squared_error": "mean_squared_error",
    "poisson": "poisson_deviance",
}


class TrueupCallback:
    """Logs vanilla and calibrated loss of a validation set after each epoch of ``fit``.

    Parameters
    ----------
    x : array-like, or what ``model.predict`` takes
        Inputs of the validation rows.
    y : array-like of shape (n,), (n, 1) or (n, k)
        Labels or targets; one column for each class where the loss is ``categorical_crossentropy``.
    loss : str, optional
        A loss of :func:`trueup.evaluate`. By default the log loss for the cross entropies, the mean
        squared error and the Poisson deviance for theirs; it must be given for any other loss.
    from_logits : bool, optional
        Whether the model predicts logits; by default what the loss of the model says, and
        probabilities where it does not.
    prefix : str, default "val_"
        Put before the loss in each key.
    run_id : str, optional
        The run; the active run by default.
    **options
        Other keywords of :func:`trueup.evaluate`.

    Notes
    -----
    The step is the index of the epoch. A failure of the evaluation is a warning and a tag of the
    run; the training goes on.

    Examples
    --------
    >>> import keras
    >>> import mlflow
    >>> import numpy as np
    >>> from trueup_mlflow import KerasCallback
    >>> x = np.linspace(-1.0, 1.0, 200)[:, None]
    >>> y = (x[:, 0] > 0).astype(int)
    >>> model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    >>> model.compile("sgd", loss="binary_crossentropy")
    >>> with mlflow.start_run() as run:
    ...     _ = model.fit(x, y, epochs=2, verbose=0, callbacks=[KerasCallback(x, y)])
    >>> "calibrated_val_log_loss" in mlflow.get_run(run.info.run_id).data.metrics
    True
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        loss: str | None = None,
        from_logits: bool | None = None,
        prefix: str = "val_",
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        self._x = x
        self._y = y
        self._loss = loss
        self._from_logits = from_logits
        self._reporter = Reporter(prefix, run_id, options=options)
        self.model: Any = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take the parameters of ``fit``, which are not needed."""

    def set_model(self, model: Any) -> None:
        """Take the model that is trained."""
        self.model = model

    def __getattr__(self, name: str) -> Any:
        """Return what does nothing for all other events of the training."""
        if not name.startswith("on_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _nothing

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:  # noqa: ARG002
        """Predict the validation rows and log their evaluation."""
        self._reporter.log(
            epoch,
            loss=lambda: self._loss or loss_of_objective(_name_of(self.model.loss), _LOSSES),
            predict=self._predictions,
        )

    def _predictions(self, loss: str) -> Mapping[str, Any]:
        predicted = self.model.predict(self._x, verbose=0)
        if not isinstance(predicted, np.ndarray):
            raise InvalidInputError(
                "the model must have one output",
                "several",
                "Call trueup_mlflow.log_evaluation for each.",
            )
        given = self._from_logits
        are_logits = getattr(self.model.loss, "from_logits", False) if given is None else given
        name = "y_logit" if are_logits and loss in LOSSES_OF_LOGITS else "y_pred"
        scores = predicted.astype(np.float64)
        if scores.ndim == 2 and scores.shape[1] <= 2:
            scores = _of_one_column(scores, are_logits=name == "y_logit")
        return {"y_true": _labels(self._y, loss), name: scores}


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing at an event."""


_nothing._is_default = True  # type: ignore[attr-defined] # so that Keras need not wait for it


def _name_of(loss: Any) -> str:
    """Return the name of a loss of Keras: a text, a function, or an object."""
    name = loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", None))
    return str(name)


def _of_one_column(scores: NDArray[Any], *, are_logits: bool) -> NDArray[Any]:
    if scores.shape[1] == 1:
        return scores[:, 0]
    return np.asarray(scores[:, 1] - scores[:, 0] if are_logits else scores[:, 1])


def _labels(y: Any, loss: str) -> NDArray[Any]:
    """Return one label for each row; columns of classes become their index."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        return labels[:, 0]
    if labels.ndim == 2 and loss in LOSSES_OF_LOGITS:
        return np.asarray(labels.argmax(axis=1))
    return labels


KerasCallback = TrueupCallback
"""The callback under the name that it has in :mod:`trueup_mlflow`."""
