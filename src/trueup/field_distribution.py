"""How the number of positives in a cell is distributed if the probabilities are right.

It is Poisson-binomial. Cells of up to 20 rows get it exactly; larger ones get the binomial with the
same mean and variance, whose number of trials need not be whole. With equal probabilities in a cell
that is the exact distribution at any size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from trueup.field_cells import Cells
from trueup.losses import FloatArray

_EXACT_ROWS = 20


def mean_absolute_deviation(cells: Cells) -> FloatArray:
    """Return ``E|sum y - sum p|`` of each cell, shape (k,); weights of 1.

    Notes
    -----
    For the binomial, ``E|X - mu| = 2 mu (P(X <= m) - P(X' <= m - 1))`` with m = floor(mu) and X'
    of one trial less, which is De Moivre's formula.
    """
    mean, trials, chance = _matched_binomial(cells)
    at_most = np.floor(mean)
    below = _at_most(at_most, trials, chance) - _at_most(at_most - 1.0, trials - 1.0, chance)
    deviation = 2.0 * mean * below
    small, mass = _small_cells(cells)
    distance = np.abs(np.arange(_EXACT_ROWS + 1) - mean[small, None])
    deviation[small] = (mass * distance).sum(axis=1)
    return np.where(cells.variance > 0.0, deviation, 0.0)


def two_sided_p_values(cells: Cells) -> FloatArray:
    """Return twice the smaller tail of each cell's number of positives; weights of 1."""
    observed = np.round(cells.label_sum)
    mean, trials, chance = _matched_binomial(cells)
    lower = _at_most(observed, trials, chance)
    upper = _at_least(observed, trials, chance)
    small, mass = _small_cells(cells)
    place, own = np.arange(_EXACT_ROWS + 1), observed[small, None]
    lower[small] = np.where(place <= own, mass, 0.0).sum(axis=1)
    upper[small] = np.where(place >= own, mass, 0.0).sum(axis=1)
    certain = np.where(np.abs(observed - mean) < 0.5, 1.0, 0.0)
    doubled = np.minimum(1.0, 2.0 * np.minimum(lower, upper))
    return np.where(cells.variance > 0.0, doubled, certain)


def _matched_binomial(cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, trials and chance of the binomial with each cell's mean and variance."""
    mean, square = cells.proba_sum, cells.sums(cells.y_proba**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(mean > 0.0, square / mean, 0.5)
        trials = np.where(mean > 0.0, mean / chance, 1.0)
    return mean, trials, chance


def _at_most(k: FloatArray, trials: FloatArray, chance: FloatArray) -> FloatArray:
    inside = betainc(np.maximum(trials - k, 1e-300), np.maximum(k, 0.0) + 1.0, 1.0 - chance)
    return np.where(k < 0.0, 0.0, np.where(k >= trials, 1.0, inside))


def _at_least(k: FloatArray, trials: FloatArray, chance: FloatArray) -> FloatArray:
    inside = betainc(np.maximum(k, 1e-300), np.maximum(trials - k + 1.0, 1e-300), chance)
    return np.where(k <= 0.0, 1.0, np.where(k >= trials + 1.0, 0.0, inside))


def _small_cells(cells: Cells) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the cells of at most 20 rows and the exact probabilities of 0 to 20 positives."""
    small = np.flatnonzero(cells.count <= _EXACT_ROWS)
    order = np.argsort(cells.levels.codes, kind="stable")
    proba, first = cells.y_proba[order], np.cumsum(cells.count) - cells.count
    mass = np.zeros((len(small), _EXACT_ROWS + 1))
    mass[:, 0] = 1.0
    for row in range(_EXACT_ROWS):
        some = cells.count[small] > row
        p = proba[first[small[some]] + row][:, None]
        before = mass[some]
        mass[some] = before * (1.0 - p)
        mass[some, 1:] += before[:, :-1] * p
    return small, mass
