"""How the positives of a cell, counted or weighted, are distributed if the probabilities are right.

Their number is Poisson-binomial. Cells of up to 20 rows get it exactly. Larger ones get, in the
middle, the binomial with the same mean and variance, whose number of trials need not be whole
(exact where the probabilities of a cell are equal), and in the tails the saddlepoint approximation,
as do cells of unequal weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit
from scipy.stats import norm

from trueup.fields.cells import Cells
from trueup.losses import EPS, FloatArray

_EXACT_ROWS = 20
_FURTHEST = 60.0
_MAX_STEPS = 60
_SAME_WEIGHT = 1e-9
_ENUMERATED_ROWS = 7


def mean_absolute_deviation(cells: Cells) -> FloatArray:
    """Return ``E|sum y - sum p|`` of each cell, shape (k,); weights of 1.

    Notes
    -----
    For the binomial, ``E|X - mu| = 2 mu (P(X <= m) - P(X' <= m - 1))`` with m = floor(mu) and X'
    of one trial less, which is De Moivre's formula.
    """
    deviation = binomial_deviation(cells.proba_sum, cells.sums(cells.y_proba**2))
    small, mass = _small_cells(cells)
    distance = np.abs(np.arange(_EXACT_ROWS + 1) - cells.proba_sum[small, None])
    deviation[small] = (mass * distance).sum(axis=1)
    return np.where(cells.variance > 0.0, deviation, 0.0)


def binomial_deviation(mean: FloatArray, square: FloatArray) -> FloatArray:
    """Return ``E|X - mean|`` of the binomials that match the sums of p and of p^2 of cells."""
    trials, chance = _matched_binomial(mean, square)
    at_most = np.floor(mean)
    below = _at_most(at_most, trials, chance) - _at_most(at_most - 1.0, trials - 1.0, chance)
    return np.asarray(2.0 * mean * below)


def two_sided_p_values(cells: Cells) -> FloatArray:
    """Return twice the tail that each cell's weighted sum of positives lies in.

    Notes
    -----
    With equal weights in a cell the approximation is within 1% at tails above 1e-4 and within 10%
    at the ends of the range. With unequal ones the sums lie on no grid; the smallest weight takes
    the place of its width. The p-value is then too large by up to a half as a rule, and by more at
    the ends of the range. Cells of up to 7 rows are exact: all their outcomes are enumerated.

    References
    ----------
    Lugannani and Rice (1980), with the second continuity correction of Daniels (1987).
    """
    scaled = _to_mean_weight_one(cells)
    tail = _saddlepoint_tails(scaled)
    small, mass = _small_cells(scaled)
    exact = scaled.spread[small] < _SAME_WEIGHT
    small, mass = small[exact], mass[exact]
    place, own = np.arange(_EXACT_ROWS + 1), np.round(scaled.label_sum[small, None])
    outwards = np.where(own > scaled.proba_sum[small, None], place >= own, place <= own)
    tail[small] = np.where(outwards, mass, 0.0).sum(axis=1)
    for rows in range(1, _ENUMERATED_ROWS + 1):
        few = np.flatnonzero((scaled.count == rows) & (scaled.spread >= _SAME_WEIGHT))
        if len(few):
            tail[few] = _enumerated_tails(scaled, few, rows)
    miss = np.abs(scaled.label_sum - scaled.proba_sum)
    certain = np.where(miss < 0.5 * scaled.smallest_weight, 1.0, 0.0)
    return np.where(scaled.variance > 0.0, np.clip(2.0 * tail, 0.0, 1.0), certain)


def _enumerated_tails(cells: Cells, which: NDArray[np.intp], rows: int) -> FloatArray:
    """Return the tails of cells of so many rows, from all 2^rows outcomes of each."""
    order = np.argsort(cells.levels.codes, kind="stable")
    first = np.cumsum(cells.count) - cells.count
    mass, sums = np.ones((len(which), 1)), np.zeros((len(which), 1))
    for row in range(rows):
        own = order[first[which] + row]
        p, weight = cells.y_proba[own, None], cells.weight[own, None]
        mass = np.concatenate([mass * (1.0 - p), mass * p], axis=1)
        sums = np.concatenate([sums, sums + weight], axis=1)
    observed = cells.label_sum[which, None]
    above = observed > cells.proba_sum[which, None]
    outwards = np.where(above, sums >= observed - 1e-9, sums <= observed + 1e-9)
    return np.asarray(np.where(outwards, mass, 0.0).sum(axis=1))


def _to_mean_weight_one(cells: Cells) -> Cells:
    """Drop rows of weight 0 and scale the weights of each cell to a mean of 1."""
    if not cells.is_weighted:
        return cells
    kept = cells.positive_weight()
    scale = kept.count / kept.total
    return replace(kept, weight=kept.weight * scale[kept.levels.codes])


def _saddlepoint_tails(cells: Cells) -> FloatArray:
    """Return the chance of each cell's sum of positives or one further from the mean."""
    width = cells.smallest_weight
    outwards = np.where(cells.label_sum > cells.proba_sum, 1.0, -1.0)
    target = cells.label_sum - 0.5 * width * outwards
    tilt = _tilts(cells, target)
    log_p, log_not_p = _log_probabilities(cells)
    row = np.logaddexp(log_not_p, log_p + cells.weight * tilt[cells.levels.codes])
    cumulant = cells.sums(row)
    _, variance = _tilted(cells, tilt)
    root = outwards * np.sign(tilt) * np.sqrt(2.0 * np.maximum(tilt * target - cumulant, 0.0))
    slope = outwards * 2.0 / width * np.sinh(0.5 * width * tilt) * np.sqrt(variance)
    middle = (np.abs(root) < 0.05) | (slope == 0.0)
    root, slope = np.where(middle, 1.0, root), np.where(middle, 1.0, slope)
    tail = norm.sf(root) - norm.pdf(root) * (1.0 / root - 1.0 / slope)
    return np.where(middle, 0.5, tail)


def _tilts(cells: Cells, target: FloatArray) -> FloatArray:
    """Return the shift of each cell's log-odds that makes its expected positives the target."""
    wanted = np.log(target) - np.log(cells.total - target)
    low, high = np.full(len(target), -_FURTHEST), np.full(len(target), _FURTHEST)
    tilt = np.zeros(len(target))
    for _ in range(_MAX_STEPS):
        mean, variance = _tilted(cells, tilt)
        low, high = np.where(mean < target, tilt, low), np.where(mean < target, high, tilt)
        with np.errstate(divide="ignore", invalid="ignore"):
            miss = wanted - (np.log(mean) - np.log(cells.total - mean))
            proposal = tilt + miss * mean * (1.0 - mean / cells.total) / variance
        inside = (proposal >= low) & (proposal <= high)
        step = np.where(inside, proposal, 0.5 * (low + high)) - tilt
        tilt = tilt + step
        if np.abs(step).max() < 1e-9:
            break
    return tilt


def _tilted(cells: Cells, tilt: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of each cell's sum of positives under shifted log-odds."""
    log_p, log_not_p = _log_probabilities(cells)
    shifted = expit(log_p - log_not_p + cells.weight * tilt[cells.levels.codes])
    own = cells.weight * shifted
    return cells.sums(own), cells.sums(cells.weight * own * (1.0 - shifted))


def _log_probabilities(cells: Cells) -> tuple[FloatArray, FloatArray]:
    proba = np.clip(cells.y_proba, 1e-300, 1.0 - EPS)
    return np.log(proba), np.log1p(-proba)


def _matched_binomial(mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return trials and chance of the binomial with each cell's mean and variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(mean > 0.0, square / mean, 0.5)
        trials = np.where(mean > 0.0, mean / chance, 1.0)
    return trials, chance


def _at_most(k: FloatArray, trials: FloatArray, chance: FloatArray) -> FloatArray:
    inside = betainc(np.maximum(trials - k, 1e-300), np.maximum(k, 0.0) + 1.0, 1.0 - chance)
    return np.where(k < 0.0, 0.0, np.where(k >= trials, 1.0, inside))


def _small_cells(cells: Cells) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the cells of at most 20 rows and the exact probabilities of 0 to 20 positives."""
    is_small = cells.count <= _EXACT_ROWS
    small = np.flatnonzero(is_small)
    mine = is_small[cells.levels.codes]
    proba = cells.y_proba[mine][np.argsort(cells.levels.codes[mine], kind="stable")]
    count = cells.count[small]
    first = np.cumsum(count) - count
    mass = np.zeros((len(small), _EXACT_ROWS + 1))
    mass[:, 0] = 1.0
    for row in range(_EXACT_ROWS):
        some = count > row
        p = proba[first[some] + row][:, None]
        before = mass[some]
        mass[some] = before * (1.0 - p)
        mass[some, 1:] += before[:, :-1] * p
    return small, mass
