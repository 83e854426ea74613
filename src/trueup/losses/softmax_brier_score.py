"""The Brier score of more than two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.losses.elementary import softmax
from trueup.losses.loss import FloatArray, Loss, SoftmaxLogLoss


class SoftmaxBrierScore(SoftmaxLogLoss):
    """Squared distance of the probabilities to the one-hot label, in [0, 2].

    It is corrected by the shift of the softmax log loss, as the Brier score of two classes is by
    that of the log loss.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.losses import SoftmaxBrierScore
    >>> margin = np.log([[0.5, 0.25, 0.25]])
    >>> SoftmaxBrierScore().values(np.array([0.0]), margin).round(4).tolist()
    [0.375]
    """

    name = "brier_score"
    minimised_by_bias = False

    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        probability = softmax(margin)
        own = np.take_along_axis(probability, y_true.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.asarray((probability**2).sum(axis=1) - 2.0 * own + 1.0)


def loss_of(name: str, y_pred: NDArray[Any]) -> str | Loss:
    """Return what ``evaluate`` needs to be told for a loss and the shape of its predictions."""
    several = y_pred.ndim == 2 and y_pred.shape[1] >= 3
    return SoftmaxBrierScore() if several and name == "brier_score" else name
