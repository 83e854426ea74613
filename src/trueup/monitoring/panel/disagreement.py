"""How far independent networks disagree with f, and what that says about its error (DR-CALD).

Five networks are fitted on the reference, each without one fold. Where the features move to rows
that the data say little about, they and f come apart; a regression of the squared error on the
squared disagreement carries that over into the error, and importance-weighted residuals correct
what is left (doubly robust).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays
from trueup.monitoring.inputs import FloatArray, spread_of
from trueup.monitoring.networks.fitted import FittedMLP
from trueup.monitoring.storage import finite, nest, unnest

if TYPE_CHECKING:
    from torch import Tensor

FOLDS = 5
_HIDDEN = 64
_STEPS = 2_000
_BATCH = 1_000
_CAP = 0.99
_RIDGE = 0.1
_TINY = float(np.finfo(np.float64).tiny)


def training_epochs(n: int) -> int:
    """Return the passes over a reference: the paper's 200, fewer for large ones: 2,000 steps."""
    per_epoch = -(-n // min(n, _BATCH))
    return min(200, max(10, _STEPS // per_epoch))


@dataclass(frozen=True)
class DisagreementModel:
    """Squared disagreement of f with networks, each of which did not see one fold.

    The networks are on the scale of the target that ``center`` and ``spread`` standardise; ``cap``
    is the largest disagreement that counts, in squared units of the target.
    """

    network: FittedMLP
    center: float
    spread: float
    cap: float

    def squared(self, x: FloatArray, y_pred: FloatArray) -> FloatArray:
        """Return the disagreement on each operational row, in squared units of the target."""
        predictions = self.network.predict(x) * self.spread + self.center
        squared = ((predictions - y_pred) ** 2).mean(axis=0)
        return np.asarray(np.minimum(squared, self.cap))

    def to_arrays(self) -> Arrays:
        scale = np.array([self.center, self.spread, self.cap])
        return nest("network", self.network.to_arrays()) | {"scale": scale}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> DisagreementModel:
        center, spread, cap = (float(value) for value in finite(arrays["scale"], 1))
        network = FittedMLP.from_arrays(unnest("network", arrays))
        return cls(network, center, spread, cap)


def fit_disagreement(
    x: FloatArray, y_pred: FloatArray, y_true: FloatArray, random_state: int = 0
) -> tuple[DisagreementModel, FloatArray]:
    """Fit the fold networks; return them and the disagreement on each reference row, shape (n,)."""
    n = len(x)
    center, spread = float(y_true.mean()), spread_of(y_true)
    fold = np.random.default_rng(random_state).permutation(n) % FOLDS
    network = _fit_fold_networks(x, (y_true - center) / spread, fold, random_state)
    unseen = network.predict(x)[fold, np.arange(n)] * spread + center
    squared = (unseen - y_pred) ** 2
    cap = float(np.quantile(squared, _CAP))
    return DisagreementModel(network, center, spread, cap), np.minimum(squared, cap)


def _fit_fold_networks(
    x: FloatArray, y: FloatArray, fold: NDArray[np.intp], random_state: int
) -> FittedMLP:
    from trueup.monitoring.networks.training import (
        StackedMLP,
        TrainingPlan,
        as_tensor,
        seeded,
        train,
    )

    generator = seeded(random_state)
    network = StackedMLP((x.shape[1], _HIDDEN, 1), FOLDS, generator)
    seen = (fold[None] != np.arange(FOLDS)[:, None]).astype(np.float64)
    columns = as_tensor(x[None]), as_tensor(y[None]), as_tensor(seen)
    plan = TrainingPlan(epochs=training_epochs(len(x)), batch_size=min(len(x), _BATCH))

    def loss(rows: Tensor, label: Tensor, weight: Tensor) -> Tensor:
        squared = (network(rows) - label).square()
        return (weight * squared).sum(-1) / weight.sum(-1).clamp(min=1.0)

    train([network], loss, columns, plan, generator)
    return network.fitted()


def calibrated_disagreement(
    errors: FloatArray,
    disagreement: FloatArray,
    weights: FloatArray,
    operational: float,
    multiplicity: FloatArray,
) -> FloatArray:
    """Return the doubly robust estimate of the mean error for each replicate, shape (b,).

    It is ``max(0, a + b d_op + weighted mean of (e - a - b d))`` with a damped slope b in [0, 1 in
    units of the error], cross-fitted over five folds. Errors, disagreement and importance weights
    of the reference rows are (n,), ``multiplicity`` (b, n) says how much each row counts in a
    replicate, ``operational`` is the mean disagreement on the batch.
    """
    base, slope = _lines(errors, disagreement, multiplicity)
    importance = multiplicity * weights
    residual = np.zeros_like(base)
    fold = np.arange(len(errors)) % FOLDS
    for index in range(FOLDS):
        out = fold == index
        a, b = _lines(errors[~out], disagreement[~out], multiplicity[:, ~out])
        residual += importance[:, out] @ errors[out] - a * importance[:, out].sum(axis=1)
        residual -= b * (importance[:, out] @ disagreement[out])
    total = np.maximum(importance.sum(axis=1), 1e-12)
    return np.asarray(np.maximum(base + slope * operational + residual / total, 0.0))


def _lines(
    errors: FloatArray, disagreement: FloatArray, multiplicity: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return intercepts and slopes of errors on disagreement; the slope is damped and in [0, 1]."""
    size = multiplicity.sum(axis=1)
    mean_e, mean_d = multiplicity @ errors / size, multiplicity @ disagreement / size
    variance = multiplicity @ disagreement**2 / size - mean_d**2
    covariance = multiplicity @ (errors * disagreement) / size - mean_e * mean_d
    spread = np.sqrt(np.maximum(multiplicity @ errors**2 / size - mean_e**2, 0.0))
    damping = _RIDGE * spread / np.maximum(mean_e, _TINY) * mean_d**2 / np.sqrt(size)
    slope = np.clip(covariance / np.maximum(variance + damping, _TINY), 0.0, 1.0)
    return np.maximum(mean_e - slope * mean_d, 0.0), slope
