"""How often one pipeline's model beats the other's trained with the same seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from trueup.decide.checks import check_level, check_same_length, check_values
from trueup.decide.proportion import Proportion


def paired_win_rate(a: ArrayLike, b: ArrayLike, *, confidence_level: float = 0.95) -> Proportion:
    """Estimate P(D < 0) + P(D = 0) / 2, where D = A - B within a pair of runs that share a seed.

    Parameters
    ----------
    a, b : array of shape (n,)
        Metric of both pipelines, in the same order of seeds; lower is better.
    confidence_level : float, default 0.95
        Nominal coverage of the interval, in (0, 1).

    Returns
    -------
    Proportion
        ``value`` in [0, 1], 1 when A wins each pair.

    Raises
    ------
    InvalidInputError
        If the arrays differ in length, are empty, not one-dimensional or not finite.

    Notes
    -----
    Clopper-Pearson: coverage is at least nominal for independent pairs. A tie is counted against A
    in the lower end and for A in the upper end, so that ties can only widen the interval.

    This is not the accuracy of Eq. 8. The same models can give 92% of all pairs and 99.9% of the
    pairs that share a training sample, because what the two runs have in common cancels in D.

    Examples
    --------
    >>> print(paired_win_rate([0.40, 0.41, 0.43, 0.44], [0.42, 0.44, 0.45, 0.43]))
    75% [19, 99]
    """
    a, b = check_values("a", a), check_values("b", b)
    check_same_length(a, b, ("a", "b"))
    check_level("confidence_level", confidence_level)
    wins = float(np.sum(a < b) + np.sum(a == b) / 2.0)
    tail = (1.0 - confidence_level) / 2.0
    low = _lower_end(int(np.sum(a < b)), len(a), tail)
    high = 1.0 - _lower_end(int(np.sum(a > b)), len(a), tail)
    return Proportion(wins / len(a), low, high, len(a), confidence_level)


def _lower_end(successes: int, n: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, n - successes + 1, tail))
