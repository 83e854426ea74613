"""A loss = value per row + link + bias correction.

The *margin* of a prediction is the scale on which one bias term acts: the logit of a probability,
the logarithm of a rate, the prediction itself in regression. ``y_logit`` enters as a margin.
A new loss is a subclass of :class:`Loss`; ``trueup.testing.check_loss`` tells whether it keeps the
rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Task = Literal["binary", "multiclass", "regression", "counts", "positive"]

EPS = float(np.finfo(np.float64).eps)
"""Probabilities are clipped to [EPS, 1 - EPS] inside a logarithm, as scikit-learn does."""


class Loss(ABC):
    """Value per row, link and bias correction of one loss; lower is better.

    Attributes
    ----------
    name : str
        Key of the loss, in the words of scikit-learn.
    task : str
        What the loss takes: "binary", "multiclass", "regression", "counts" (targets from 0 on and
        positive predictions) or "positive" (positive targets and predictions).
    minimised_by_bias : bool
        Whether the bias term is the one with the lowest mean loss.

    Examples
    --------
    >>> from trueup.losses import LOSSES
    >>> sorted(LOSSES)[:3]
    ['brier_score', 'gamma_deviance', 'log_loss']
    """

    name: ClassVar[str]
    task: ClassVar[Task]
    minimised_by_bias: ClassVar[bool] = True

    @abstractmethod
    def link(self, y_pred: FloatArray) -> FloatArray:
        """Return the margin of predictions that were checked for the task."""

    @abstractmethod
    def values(self, y_true: FloatArray, margin: FloatArray) -> FloatArray:
        """Return the loss of each row, shape (n,)."""

    @abstractmethod
    def fit_bias(
        self, y_true: FloatArray, margin: FloatArray, weight: FloatArray | None
    ) -> FloatArray:
        """Return the bias term: shape (), or (k,) where the margin has k columns."""

    @abstractmethod
    def correct(self, margin: FloatArray, bias: FloatArray) -> FloatArray:
        """Return the margin after the bias correction: one bias for all rows, or one for each."""

    def fit_biases(
        self,
        y_true: FloatArray,
        margin: FloatArray,
        weight: FloatArray | None,
        group: NDArray[np.intp],
        fitted_on: NDArray[np.bool_],
    ) -> list[FloatArray]:
        """Return the bias terms of several selections of the rows.

        Parameters
        ----------
        y_true, margin, weight : float arrays of n rows
            As ``fit_bias`` takes them.
        group : int array of shape (n,)
            Group of each row.
        fitted_on : bool array of shape (k, n_groups)
            Groups that each bias is fitted on.
        """
        return [
            self.fit_bias(y_true[mine], margin[mine], None if weight is None else weight[mine])
            for mine in (groups[group] for groups in fitted_on)
        ]
