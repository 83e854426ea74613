"""Which configuration gets the next seed of the finals: the leader or its closest rival."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup_optuna.study.ranking import Ranking

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Claim = tuple[int, int]
"""Number of a configuration's trial, and the index of one of its seeds."""


def next_claim(table: Ranking, claimed: Collection[Claim], n_max: int) -> Claim | None:
    """Return the training that is wanted next; None where nobody is left to race.

    ``claimed`` are those of the finals that are finished or under way; a configuration may have
    ``n_max`` seeds. Own means rank configurations, with a budget too: one that its neighbours draw
    far up or down would never get the seed that tells whether they are right.
    """
    numbers, own = table.numbers, table.n_seeds
    taken = {number: {i for c, i in claimed if c == number} for number in numbers}
    ahead = [sum(i >= n for i in taken[c]) for c, n in zip(numbers, own, strict=True)]
    counted = np.where(table.closed, n_max, own + np.array(ahead, dtype=np.intp))
    variance = table.noise.moderated
    chosen = int(next_training(table.means, variance, counted, table.contenders, n_max))
    if chosen < 0:
        return None
    index = int(own[chosen])
    while index in taken[numbers[chosen]]:
        index += 1
    return numbers[chosen], index


def next_training(
    mean: FloatArray, variance: FloatArray, n_seeds: IntArray, alive: BoolArray, n_max: int
) -> IntArray:
    """Return the configuration to train next, of shape (...,).

    It is the leader (lowest mean) or its rival (lowest mean minus one standard error among the
    others), whichever has fewer seeds; -1 where fewer than two are alive or all have ``n_max``
    seeds. ``mean`` (lower = better), ``variance`` of a single result, ``n_seeds`` (those that are
    in training included) and ``alive`` are of shape (..., k).

    The sampling rule of LUCB (Kalyanakrishnan et al. 2012) with a standard error in place of its
    bound: the error rate is the eliminator's affair, this only spends the budget where it matters.
    """
    open_ = alive & (n_seeds < n_max)
    optimistic = mean - np.sqrt(variance / np.maximum(n_seeds, 1))
    leader = np.where(alive, mean, np.inf).argmin(-1)
    is_leader = np.arange(mean.shape[-1]) == leader[..., None]
    rival = np.where(alive & ~is_leader, optimistic, np.inf).argmin(-1)
    behind = _at(n_seeds, leader) <= _at(n_seeds, rival)
    chosen, other = np.where(behind, leader, rival), np.where(behind, rival, leader)
    chosen = np.where(_at(open_, chosen), chosen, other)
    fallback = np.where(open_, optimistic, np.inf).argmin(-1)
    chosen = np.where(_at(open_, chosen), chosen, fallback)
    over = (alive.sum(-1) < 2) | ~open_.any(-1)
    return np.asarray(np.where(over, -1, chosen))


def _at(values: NDArray[Any], index: IntArray) -> NDArray[Any]:
    return np.take_along_axis(values, index[..., None], -1)[..., 0]
