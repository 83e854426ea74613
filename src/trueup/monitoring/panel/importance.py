"""Weights of reference rows for a batch: by RuLSIF's density ratio, and by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from trueup.monitoring.inputs import FloatArray

CLIP = 5.0
_ALPHA = 0.1
_CENTERS = 100
_WIDTHS = (0.3, 0.6, 1.0, 2.0)
_RIDGES = (1e-2, 1e-1, 1.0)
_FOLDS = 3
_MIN_NEIGHBOURS = 5


def pooled_scale(reference: FloatArray, operational: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both samples standardised by their union and clipped at 5 standard deviations."""
    pooled = np.concatenate([reference, operational])
    mean, spread = pooled.mean(axis=0), pooled.std(axis=0)
    spread = np.where(spread > 1e-12, spread, 1.0)
    return (
        np.clip((reference - mean) / spread, -CLIP, CLIP),
        np.clip((operational - mean) / spread, -CLIP, CLIP),
    )


def effective_sample_size(weights: FloatArray) -> float:
    """Return ``(sum w)^2 / (n sum w^2)``, a share of the rows in (0, 1]; 0 if all weights are 0."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / (len(weights) * squares) if squares > 0.0 else 0.0


@dataclass(frozen=True)
class _Kernels:
    reference: FloatArray
    operational: FloatArray

    @cached_property
    def gram(self) -> FloatArray:
        ref, op = self.reference, self.operational
        return np.asarray(_ALPHA * op.T @ op / len(op) + (1.0 - _ALPHA) * ref.T @ ref / len(ref))

    def solve(self, ridge: float) -> FloatArray:
        damped = self.gram + ridge * np.eye(len(self.gram))
        return np.asarray(np.linalg.solve(damped, self.operational.mean(axis=0)))

    def risk(self, theta: FloatArray) -> float:
        ref, op = self.reference @ theta, self.operational @ theta
        quadratic = _ALPHA * (op**2).mean() + (1.0 - _ALPHA) * (ref**2).mean()
        return float(quadratic / 2.0 - op.mean())


def rulsif_weights(
    reference: FloatArray, operational: FloatArray, random_state: int = 0
) -> FloatArray:
    """Return the relative importance ``p_op / (0.1 p_op + 0.9 p_ref)`` of each reference row, (n,).

    Rows are encoded, (n, d) and (m, d). Weights are at least 0 and at most about 10; all 1 for a
    single operational row, from which no density can be chosen. ``random_state`` draws at most 100
    kernel centres, and the folds that choose width and ridge.

    References
    ----------
    Yamada, Suzuki, Kanamori, Hachiya and Sugiyama, "Relative density-ratio estimation for robust
    distribution comparison", 2011.
    """
    if len(operational) < 2:
        return np.ones(len(reference))
    rng = np.random.default_rng(random_state)
    ref, op = pooled_scale(reference, operational)
    centers = op[rng.choice(len(op), min(_CENTERS, len(op)), replace=False)]
    to_ref, to_op = cdist(ref, centers, "sqeuclidean"), cdist(op, centers, "sqeuclidean")
    positive = to_op[to_op > 0.0]
    unit = float(np.median(positive)) / 2.0 if len(positive) else 1.0
    n_folds = min(_FOLDS, len(op))
    folds = (rng.permutation(len(ref)) % n_folds, rng.permutation(len(op)) % n_folds)
    _, width, ridge = min(
        (risk, width, ridge)
        for width in _WIDTHS
        for risk, ridge in _held_out_risks(_gaussian(to_ref, to_op, width, unit), folds)
    )
    kernels = _gaussian(to_ref, to_op, width, unit)
    return np.maximum(kernels.reference @ kernels.solve(ridge), 0.0)


def _gaussian(to_ref: FloatArray, to_op: FloatArray, width: float, unit: float) -> _Kernels:
    scale = -1.0 / (2.0 * width**2 * unit)
    return _Kernels(np.exp(to_ref * scale), np.exp(to_op * scale))


def _held_out_risks(
    kernels: _Kernels, folds: tuple[np.ndarray, np.ndarray]
) -> Iterator[tuple[float, float]]:
    """Yield the risk of each ridge on the folds that it was not fitted to, and the ridge."""
    parts = [
        (
            _part(kernels, folds[0] != fold, folds[1] != fold),
            _part(kernels, *(one == fold for one in folds)),
        )
        for fold in range(folds[1].max() + 1)
    ]
    for ridge in _RIDGES:
        yield sum((held.risk(seen.solve(ridge)) for seen, held in parts), 0.0), ridge


def _part(kernels: _Kernels, ref: np.ndarray, op: np.ndarray) -> _Kernels:
    return _Kernels(kernels.reference[ref], kernels.operational[op])


def neighbour_weights(reference: FloatArray, operational: FloatArray) -> FloatArray:
    """Return how often each reference row is among the nearest ones of an operational row, sum 1.

    ``weights @ errors`` is the mean over operational rows of the mean error of their
    ``max(5, sqrt(n))`` nearest reference rows. Rows are standardised by the reference, (n, d) and
    (m, d), and clipped at 5 standard deviations.
    """
    n = len(reference)
    neighbours = min(n, max(_MIN_NEIGHBOURS, round(n**0.5)))
    tree = cKDTree(np.clip(reference, -CLIP, CLIP))
    _, index = tree.query(np.clip(operational, -CLIP, CLIP), k=neighbours)
    counts = np.bincount(np.ravel(index), minlength=n)
    return np.asarray(counts / counts.sum())
