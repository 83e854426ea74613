"""How many seeds the sequential rule needs until it gives a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import nctdtr, ndtri

from trueup.decide.e_process import Moments, confidence_radius
from trueup.decide.pairing import (
    FloatArray,
    Paired,
    Values,
    check_level,
    check_min_effect,
    check_values,
    pair_up,
)
from trueup.errors import InvalidInputError
from trueup.losses.elementary import exponent_of, scaled_by
from trueup.presentation import Line, Presented

PILOT_LEVEL = 0.8
"""Nominal coverage of the interval that a pilot gives."""

_N_PATHS = 4000
_N_LOOKS = 400
_LARGEST_EFFECT = 30.0
_NOBODY_TRAINS = 10_000
"""More seeds than this are "or more": the digits of such an end say nothing."""


@dataclass(frozen=True)
class SeedsNeeded(Presented):
    """Number of seed pairs at which the rule has given a verdict with the wanted probability.

    Attributes
    ----------
    n : float
        A whole number of pairs in total, the observed ones included; infinite where the observed
        difference is no larger than ``min_effect``, so that no number of seeds gives a verdict.
    low, high : float
        80% interval of ``n`` that carries the uncertainty of the pilot; ``high`` may be infinite.
    n_pairs : int
        Pairs of the pilot.
    power : float
        The wanted probability of a verdict.

    Examples
    --------
    >>> from trueup.comparison import required_seeds
    >>> needed = required_seeds([0.41, 0.42, 0.40, 0.41], [0.44, 0.45, 0.42, 0.44])
    >>> needed.low <= needed.n <= needed.high
    True
    """

    n: float
    low: float
    high: float
    n_pairs: int
    power: float

    @property
    def more(self) -> float:
        """Pairs that are still missing: ``n`` minus the observed pairs, at least 1."""
        return max(self.n - self.n_pairs, 1.0)

    def summary(self) -> str:
        """Return what a verdict takes, in words."""
        return f"A verdict with probability {self.power:.0%} takes {self}."

    def lines(self) -> list[Line]:
        """Return the number of pairs in all, with its interval."""
        return [Line("pairs of seeds", self.n, self.low, self.high)]

    def __str__(self) -> str:
        low, high = (max(end - self.n_pairs, 1.0) for end in (self.low, self.high))
        if math.isinf(self.low):
            return "no number of seeds"
        if math.isinf(self.n):
            return f"at least {low:.0f} more seed{'s' * (low > 1)}, perhaps no number"
        span = f"{low:.0f} or more" if high > _NOBODY_TRAINS else f"{low:.0f}-{high:.0f}"
        return f"{self.more:.0f} more seed{'s' * (self.more > 1)} ({span})"


def required_seeds(
    candidate: Values | ArrayLike,
    baseline: Values | ArrayLike,
    *,
    power: float = 0.8,
    min_effect: float = 0.0,
    confidence_level: float = 0.95,
    paired: Paired = "auto",
) -> SeedsNeeded:
    """Say how many seeds :func:`compare` needs for a verdict, from the runs of a pilot.

    Parameters
    ----------
    candidate, baseline : mapping seed -> value, or array of shape (n,)
        At least two pairs, formed as in :func:`compare`; the position in an array is its seed.
    power : float, default 0.8
        Wanted probability that the verdict has come by then, in (0, 1).
    min_effect : float, default 0
        Smallest difference that matters, in units of the metric.
    confidence_level : float, default 0.95
        Level of the comparison.
    paired : bool or "auto"
        As in :func:`compare`.

    Returns
    -------
    SeedsNeeded
        Total number of pairs with an 80% interval.

    Raises
    ------
    InvalidInputError
        If there are fewer than two pairs, or a value is not finite or out of range.

    Notes
    -----
    The observed standardised difference is taken as the truth for ``n``; the interval inverts the
    noncentral t distribution and is exact for normal differences. ``n`` is the quantile of the
    first time at which the rule gives a verdict, not the size of one fixed test.

    Examples
    --------
    >>> noise = [0.3, -1.1, 0.6, 1.2, -0.7, -0.9, 0.4, 0.2]
    >>> pilot = {seed: 0.5 - 0.004 + 0.005 * z for seed, z in enumerate(noise)}
    >>> print(required_seeds(pilot, dict.fromkeys(pilot, 0.5)))
    10 more seeds (3-92)
    """
    check_level("power", power)
    check_level("confidence_level", confidence_level)
    check_min_effect(min_effect)
    both = _by_seed("candidate", candidate), _by_seed("baseline", baseline)
    return seeds_from_differences(
        pair_up(*both, paired=paired).differences,
        power=power,
        min_effect=min_effect,
        confidence_level=confidence_level,
    )


def _by_seed(name: str, values: Values | ArrayLike) -> Values:
    return values if isinstance(values, Mapping) else dict(enumerate(check_values(name, values)))


def seeds_from_differences(
    differences: FloatArray, *, power: float, min_effect: float, confidence_level: float
) -> SeedsNeeded:
    """Return the seeds needed, from two or more paired differences of a pilot."""
    n_pairs = len(differences)
    if n_pairs < 2:
        raise InvalidInputError(
            "candidate and baseline must give at least 2 pairs", str(n_pairs), "Run more seeds."
        )
    exponent = exponent_of(differences)
    differences = scaled_by(differences, exponent)
    least = float(scaled_by(np.array([min_effect]), exponent)[0])
    distance = abs(float(np.mean(differences))) - least
    scale = float(np.std(differences, ddof=1))
    if scale > 0.0:
        effect = distance / scale
    else:
        effect = _LARGEST_EFFECT if distance > 0.0 else -_LARGEST_EFFECT
    weakest, strongest = effect_interval(effect, n_pairs)
    alpha = 1.0 - confidence_level
    n, low, high = (seeds_to_verdict(e, power, alpha) for e in (effect, strongest, weakest))
    return SeedsNeeded(n, low, high, n_pairs, power)


def effect_interval(effect: float, n: int) -> tuple[float, float]:
    """Return the interval of the standardised effect, cut at zero from below."""
    statistic = min(effect, _LARGEST_EFFECT) * math.sqrt(n)
    tail = (1.0 - PILOT_LEVEL) / 2.0
    ends = [noncentrality(statistic, n - 1, level) for level in (1.0 - tail, tail)]
    return ends[0] / math.sqrt(n), ends[1] / math.sqrt(n)


def noncentrality(statistic: float, df: int, level: float) -> float:
    """Return the noncentrality >= 0 at which the statistic is the ``level`` quantile."""

    def miss(noncentrality: float) -> float:
        return float(nctdtr(df, noncentrality, statistic)) - level

    if miss(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while miss(high) > 0.0:
        high *= 2.0
    return float(brentq(miss, 0.0, high, xtol=1e-9))


@lru_cache(maxsize=256)
def seeds_to_verdict(effect: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the number of pairs by which the rule gives a verdict with probability ``power``.

    ``effect`` is the distance of E[D] from the bound that it must clear, in standard deviations of
    D; where it is not positive the number is infinite.

    Notes
    -----
    A seeded simulation of 4,000 normal sequences, looked at on up to 400 sizes: between two looks
    the sum and the sum of squares are drawn exactly, so the cost does not grow with the answer. Its
    error is about 2%.
    """
    if effect <= 0.0:
        return math.inf
    effect = min(effect, _LARGEST_EFFECT)
    looks = _looks(effect, power, alpha)
    moments = _simulate(effect, looks)
    verdict = moments.mean > confidence_radius(moments, alpha)
    share = np.maximum.accumulate(verdict, axis=1).mean(axis=0)
    return float(looks[np.argmax(share >= power)])


def _looks(effect: float, power: float, alpha: float) -> FloatArray:
    """Return sizes up to one at which a single look has more than the wanted power."""
    z = float(ndtri(0.5 + power / 2.0)) + 2.0
    horizon = 8.0
    while math.sqrt(horizon) * (effect - _typical_radius(horizon, alpha)) < z:
        horizon *= 1.5
    return np.unique(np.round(np.geomspace(1.0, math.ceil(horizon) + 8.0, _N_LOOKS)))


def _typical_radius(n: float, alpha: float) -> float:
    unit = Moments(np.array([n]), np.zeros(1), np.array([n]))
    return float(confidence_radius(unit, alpha)[0])


def _simulate(effect: float, looks: FloatArray) -> Moments:
    rng = np.random.default_rng(0)
    block = np.diff(looks, prepend=0.0)
    sums = effect * block + np.sqrt(block) * rng.standard_normal((_N_PATHS, len(looks)))
    squares = sums**2 / block
    squares[:, block > 1] += rng.chisquare(block[block > 1] - 1.0, (_N_PATHS, (block > 1).sum()))
    mean = np.cumsum(sums, axis=1) / looks
    within = np.cumsum(squares, axis=1) - looks * mean**2
    return Moments(looks, mean, np.maximum(within, 0.0))
