"""The result type of the two probabilities that one pipeline beats another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proportion:
    """An estimated probability with its interval.

    Attributes
    ----------
    value : float
        The estimate, in [0, 1].
    low, high : float
        Ends of the interval, in [0, 1].
    n_pairs : int
        Number of pairs that ``value`` is a mean of; pairs that share a model are not independent.
    confidence_level : float
        Nominal coverage of the interval for a fixed number of seeds.

    Examples
    --------
    >>> from trueup.comparison import paired_win_rate
    >>> paired_win_rate([0.41, 0.42, 0.40], [0.44, 0.45, 0.42]).value
    1.0
    """

    value: float
    low: float
    high: float
    n_pairs: int
    confidence_level: float

    def __str__(self) -> str:
        return f"{self.value:.0%} [{100 * self.low:.0f}, {100 * self.high:.0f}]"
