"""How a level's positives, counted or weighted, are distributed if the probabilities are right.

Their number is Poisson-binomial. Levels of up to 20 rows get it exactly. Larger ones get, in the
middle, the binomial with the same mean and variance, whose number of trials need not be whole
(exact where the probabilities of a level are equal), and in the tails the saddlepoint
approximation, as do levels of unequal weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueup.fields.cells import Cells, LevelSums
from trueup.losses import EPS, FloatArray

_EXACT_ROWS = 20
_FURTHEST = 60.0
_MAX_STEPS = 60
_LARGEST_EXPONENT = 600.0
_SAME_WEIGHT = 1e-9
_ENUMERATED_ROWS = 7
_ROOT_OF_TWO_PI = np.sqrt(2.0 * np.pi)


def mean_absolute_deviation(cells: Cells) -> FloatArray:
    """Return ``E|sum y - sum p|`` of each level, shape (k,); weights of 1.

    For the binomial it is ``2 mu (P(X <= m) - P(X' <= m - 1))`` with m = floor(mu) and X' of one
    trial less, which is De Moivre's formula.
    """
    return np.concatenate([_deviations(part) for part in cells.parts()])


def _deviations(cells: Cells) -> FloatArray:
    deviation = binomial_deviation(cells.sums.proba, cells.sums.square)
    small, mass = _small_cells(cells)
    distance = np.abs(np.arange(_EXACT_ROWS + 1) - cells.sums.proba[small, None])
    deviation[small] = (mass * distance).sum(axis=1)
    return np.where(cells.sums.variance > 0.0, deviation, 0.0)


def binomial_deviation(mean: FloatArray, square: FloatArray) -> FloatArray:
    """Return ``E|X - mean|`` of the binomials that match the sums of p and of p^2 of levels."""
    trials, chance = _matched_binomial(mean, square)
    at_most = np.floor(mean)
    below = _at_most(at_most, trials, chance) - _at_most(at_most - 1.0, trials - 1.0, chance)
    return np.asarray(2.0 * mean * below)


def binomial_p_values(sums: LevelSums) -> FloatArray:
    """Return twice the tail of each level's positives under the binomial with the same mean.

    Notes
    -----
    Without weights the p-value is exact where the probabilities of a level are equal, and never
    too small by their being unequal (Hoeffding 1956), for sums one or further from the mean. With
    weights the rows of a level count as Kish's effective number of rows.
    """
    from scipy.special import betainc  # loaded where fields are measured

    trials = sums.total**2 / sums.weight_square
    hits = np.minimum(sums.label / sums.total, 1.0) * trials
    chance = np.clip(sums.proba / sums.total, 0.0, 1.0)
    above = sums.label > sums.proba
    hits, chance = np.where(above, hits, trials - hits), np.where(above, chance, 1.0 - chance)
    tail = betainc(np.maximum(hits, 1e-300), np.maximum(trials - hits, 0.0) + 1.0, chance)
    return np.where(hits > 0.0, np.clip(2.0 * tail, 0.0, 1.0), 1.0)


def two_sided_p_values(cells: Cells) -> FloatArray:
    """Return twice the tail that each level's weighted sum of positives lies in.

    Notes
    -----
    With equal weights in a level the approximation is within 1% at tails above 1e-4 and within 10%
    at the ends of the range. With unequal ones the sums lie on no grid; the smallest weight takes
    the place of its width. The p-value is then too large by up to a half as a rule, and by more at
    the ends of the range. Levels of up to 7 rows are exact: all their outcomes are enumerated.

    References
    ----------
    Lugannani and Rice (1980), with the second continuity correction of Daniels (1987).
    """
    return np.concatenate([_tails(part) for part in cells.parts()])


def _tails(cells: Cells) -> FloatArray:
    scaled, sums = _to_mean_weight_one(cells)
    spread = sums.weight_spread
    tail = _saddlepoint_tails(scaled, sums)
    small, mass = _small_cells(scaled)
    exact = spread[small] < _SAME_WEIGHT
    small, mass = small[exact], mass[exact]
    place, own = np.arange(_EXACT_ROWS + 1), np.round(sums.label[small, None])
    outwards = np.where(own > sums.proba[small, None], place >= own, place <= own)
    tail[small] = np.where(outwards, mass, 0.0).sum(axis=1)
    for rows in range(1, _ENUMERATED_ROWS + 1):
        few = np.flatnonzero((scaled.count == rows) & (spread >= _SAME_WEIGHT))
        if len(few):
            tail[few] = _enumerated_tails(scaled, sums, few, rows)
    miss = np.abs(sums.label - sums.proba)
    certain = np.where(miss < 0.5 * _smallest_weight(scaled), 1.0, 0.0)
    return np.where(sums.variance > 0.0, np.clip(2.0 * tail, 0.0, 1.0), certain)


def _enumerated_tails(
    cells: Cells, sums: LevelSums, which: NDArray[np.intp], rows: int
) -> FloatArray:
    """Return the tails of levels of so many rows, from all 2^rows outcomes of each."""
    weight = np.ones(len(cells.y_true)) if cells.weight is None else cells.weight
    mass, outcome = np.ones((len(which), 1)), np.zeros((len(which), 1))
    for row in range(rows):
        own = cells.first[which] + row
        p, w = cells.y_proba[own, None], weight[own, None]
        mass = np.concatenate([mass * (1.0 - p), mass * p], axis=1)
        outcome = np.concatenate([outcome, outcome + w], axis=1)
    observed = sums.label[which, None]
    above = observed > sums.proba[which, None]
    outwards = np.where(above, outcome >= observed - 1e-9, outcome <= observed + 1e-9)
    return np.asarray(np.where(outwards, mass, 0.0).sum(axis=1))


def _to_mean_weight_one(cells: Cells) -> tuple[Cells, LevelSums]:
    """Drop rows of weight 0 and scale the weights of each level to a mean of 1."""
    if cells.weight is None:
        return cells, cells.sums
    kept = cells.positive_weight()
    if kept.weight is None:  # all weights were 0 or 1
        return kept, kept.sums
    scale = kept.count / cells.sums.total
    scaled = replace(kept, weight=kept.weight * kept.of_rows(scale))
    return scaled, cells.sums.scaled(scale, kept.count)


def _smallest_weight(cells: Cells) -> FloatArray:
    if cells.weight is None:
        return np.ones(len(cells.count))
    return np.asarray(np.minimum.reduceat(cells.weight, cells.first))


def _saddlepoint_tails(cells: Cells, sums: LevelSums) -> FloatArray:
    """Return the chance of each level's sum of positives or one further from the mean."""
    from scipy.special import ndtr

    width = _smallest_weight(cells)
    outwards = np.where(sums.label > sums.proba, 1.0, -1.0)
    target = sums.label - 0.5 * width * outwards
    tilted = _Tilted(cells)
    tilt = tilted.solve(target, sums.total)
    cumulant, variance = tilted.cumulant_and_variance(tilt)
    root = outwards * np.sign(tilt) * np.sqrt(2.0 * np.maximum(tilt * target - cumulant, 0.0))
    slope = outwards * 2.0 / width * np.sinh(0.5 * width * tilt) * np.sqrt(variance)
    middle = (np.abs(root) < 0.05) | (slope == 0.0)
    root, slope = np.where(middle, 1.0, root), np.where(middle, 1.0, slope)
    density = np.exp(-0.5 * root**2) / _ROOT_OF_TWO_PI
    return np.where(middle, 0.5, ndtr(-root) - density * (1.0 / root - 1.0 / slope))


class _Tilted:
    """The sums of positives of levels whose log-odds are shifted, each level by its own tilt."""

    def __init__(self, cells: Cells) -> None:
        proba = np.clip(cells.y_proba, 1e-300, 1.0 - EPS)
        self.cells = cells
        self.not_proba = 1.0 - proba
        self.odds = proba / self.not_proba

    def cumulant_and_variance(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log(E exp(tilt times the sum)) of each level, and the variance of its sum."""
        odds, beyond = self._odds(tilt)
        cumulant = odds + 1.0
        cumulant *= self.not_proba
        np.log(cumulant, out=cumulant)
        cumulant += beyond
        return self.cells.over(cumulant), self._moments(odds)[1]

    def _odds(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray | float]:
        """Return the odds of each row, and what was left out of their logarithms.

        Only weights can take the odds out of float64.
        """
        if self.cells.weight is None:
            odds = self.cells.of_rows(np.exp(tilt))
            odds *= self.odds
            return odds, 0.0
        exponents = self.cells.weight * self.cells.of_rows(tilt)
        held = np.minimum(exponents, _LARGEST_EXPONENT)
        return self.odds * np.exp(held), exponents - held

    def _moments(self, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of each level's sum; the odds are used up."""
        weight, not_proba = self.cells.weight, odds + 1.0
        np.divide(1.0, not_proba, out=not_proba)
        odds *= not_proba
        if weight is not None:
            odds *= weight
        mean = self.cells.over(odds)
        odds *= not_proba
        return mean, self.cells.weighted(odds, weight)

    def solve(self, target: FloatArray, total: FloatArray) -> FloatArray:
        """Return the tilt with which each level's expected sum is the target."""
        with np.errstate(invalid="ignore"):  # a level of certain labels has no target
            wanted = np.log(target) - np.log(total - target)
        low, high = np.full(len(target), -_FURTHEST), np.full(len(target), _FURTHEST)
        tilt, (mean, variance) = np.zeros(len(target)), self._moments(self.odds.copy())
        for _ in range(_MAX_STEPS):
            low, high = np.where(mean < target, tilt, low), np.where(mean < target, high, tilt)
            with np.errstate(divide="ignore", invalid="ignore"):
                miss = wanted - (np.log(mean) - np.log(total - mean))
                proposal = tilt + miss * mean * (1.0 - mean / total) / variance
            inside = (proposal >= low) & (proposal <= high)
            step = np.where(inside, proposal, 0.5 * (low + high)) - tilt
            tilt = tilt + step
            if np.abs(step).max() < 1e-9:
                break
            mean, variance = self._moments(self._odds(tilt)[0])
        return tilt


def _matched_binomial(mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return trials and chance of the binomial with each cell's mean and variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(mean > 0.0, square / mean, 0.5)
        trials = np.where(mean > 0.0, mean / chance, 1.0)
    return trials, chance


def _at_most(k: FloatArray, trials: FloatArray, chance: FloatArray) -> FloatArray:
    from scipy.special import betainc

    inside = betainc(np.maximum(trials - k, 1e-300), np.maximum(k, 0.0) + 1.0, 1.0 - chance)
    return np.where(k < 0.0, 0.0, np.where(k >= trials, 1.0, inside))


def _small_cells(cells: Cells) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the levels of at most 20 rows and the exact probabilities of 0 to 20 positives."""
    small = np.flatnonzero(cells.count <= _EXACT_ROWS)
    count, first = cells.count[small], cells.first[small]
    mass = np.zeros((len(small), _EXACT_ROWS + 1))
    mass[:, 0] = 1.0
    for row in range(count.max(initial=0)):
        some = count > row
        p = cells.y_proba[first[some] + row][:, None]
        before = mass[some]
        mass[some] = before * (1.0 - p)
        mass[some, 1:] += before[:, :-1] * p
    return small, mass
