"""The estimators that the consensus is the median of, all on one labelled reference.

A member gives its estimate for a batch together with its Bayesian-bootstrap replicates over the
reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.monitoring.batch import Batch
from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.panel.disagreement import calibrated_disagreement
from trueup.monitoring.panel.importance import neighbour_weights, rulsif_weights

REPLICATES = 200
_NEIGHBOUR_ROWS = 5_000
_IMPORTANCE_ROWS = 1_000


@dataclass(frozen=True)
class Reference:
    """Labelled rows with out-of-sample errors.

    Attributes
    ----------
    x : array of shape (n, d)
        Encoded features.
    errors : array of shape (n,)
        Squared error of f on each row, which f did not see.
    disagreement : array of shape (n,)
        Squared disagreement of f with networks that did not see the row.
    """

    x: FloatArray
    errors: FloatArray
    disagreement: FloatArray


@dataclass(frozen=True)
class Replicated:
    """An estimate with its bootstrap replicates of shape (replicates,)."""

    value: float
    replicates: FloatArray


def bayesian_bootstrap(n: int, random_state: int) -> FloatArray:
    """Return weights of shape (1 + replicates, n) with row sums n; the first row is ones."""
    draws = np.random.default_rng(random_state).standard_exponential((REPLICATES, n))
    draws *= n / draws.sum(axis=1, keepdims=True)
    return np.concatenate([np.ones((1, n)), draws])


def importance_weights(reference: Reference, batch: Batch, random_state: int) -> FloatArray:
    """Return the RuLSIF weights of the reference against at most 1,000 rows of the batch."""
    rows = batch.sample(_IMPORTANCE_ROWS, random_state)
    return rulsif_weights(reference.x, rows, random_state)


def weighted(reference: Reference, weights: FloatArray, multiplicity: FloatArray) -> Replicated:
    """Return the mean error of the reference under the weights (self-normalised)."""
    total = np.maximum(multiplicity @ weights, np.finfo(np.float64).tiny)
    values = multiplicity @ (weights * reference.errors) / total
    return Replicated(float(values[0]), values[1:])


def neighbours(
    reference: Reference, batch: Batch, multiplicity: FloatArray, random_state: int
) -> Replicated:
    """Return the mean error of the nearest reference rows of at most 5,000 rows of the batch."""
    rows = batch.sample(_NEIGHBOUR_ROWS, random_state)
    return weighted(reference, neighbour_weights(reference.x, rows), multiplicity)


def doubly_robust(
    reference: Reference,
    operational: float,
    weights: FloatArray,
    multiplicity: FloatArray,
) -> tuple[Replicated, float]:
    """Return DR-CALD and how much larger the disagreement is than on the reference.

    ``operational`` is the mean disagreement on the batch.
    """
    values = calibrated_disagreement(
        reference.errors, reference.disagreement, weights, operational, multiplicity
    )
    ratio = operational / max(float(reference.disagreement.mean()), np.finfo(np.float64).tiny)
    return Replicated(float(values[0]), values[1:]), ratio


def rescaled(value: float, reference: Reference, multiplicity: FloatArray) -> Replicated:
    """Return a network's estimate; replicates scale it by the mean error of the reference."""
    mean = float(reference.errors.mean())
    if mean <= 0.0:
        return Replicated(value, np.full(len(multiplicity) - 1, value))
    level = multiplicity[1:] @ reference.errors / len(reference.errors)
    return Replicated(value, value * level / mean)
