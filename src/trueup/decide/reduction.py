"""How much of the seed noise the calibrated metric takes away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from trueup.decide.pairing import FloatArray, check_level, check_same_length, check_values
from trueup.errors import UndefinedMetricError
from trueup.losses.elementary import exponent_of, scaled_by
from trueup.presentation import Line, Presented

APPROXIMATE_BELOW = 30
"""With fewer runs the interval is labelled approximate: it can then be too short."""


@dataclass(frozen=True)
class Reduction(Presented):
    """Reduction of a standard deviation over seeds.

    Attributes
    ----------
    value : float
        1 - sd(calibrated) / sd(vanilla); at most 1, negative where the noise grew.
    low, high : float
        Ends of its interval.
    n : int
        Number of runs.
    approximate : bool
        True with fewer than 30 runs.
    confidence_level : float
        Nominal coverage of the interval.

    Examples
    --------
    >>> from trueup.comparison import variance_reduction
    >>> round(variance_reduction([0.40, 0.44, 0.42], [0.41, 0.43, 0.42]).value, 2)
    0.5
    """

    value: float
    low: float
    high: float
    n: int
    approximate: bool
    confidence_level: float

    def summary(self) -> str:
        """Return how much of the noise over seeds is taken away, in words."""
        return f"Noise over {self.n} seeds taken away by calibrating: {self}."

    def lines(self) -> list[Line]:
        """Return the reduction with its interval."""
        return [Line("reduction of the sd", self.value, self.low, self.high)]

    def __str__(self) -> str:
        label = " approximately" * self.approximate
        return f"{self.value:+.0%} [{100 * self.low:+.0f}, {100 * self.high:+.0f}]{label}"


def variance_reduction(
    vanilla: ArrayLike, calibrated: ArrayLike, *, confidence_level: float = 0.95
) -> Reduction:
    """Compare the standard deviations over seeds of one pipeline's two metrics.

    Parameters
    ----------
    vanilla, calibrated : array of shape (n,)
        Both metrics of the same runs, in the same order; at least 3 runs.
    confidence_level : float, default 0.95
        Nominal coverage of the interval, in (0, 1).

    Returns
    -------
    Reduction
        ``value`` = 1 - sd ratio; 0.3 means that the calibrated metric has 30% less noise.

    Raises
    ------
    InvalidInputError
        If the arrays differ in length, are too short, or are not finite.
    UndefinedMetricError
        If either metric is the same in all runs.

    Notes
    -----
    Jackknife over runs of the logarithm of the ratio, with a t quantile. At 95% it covered .94-.95
    of seeded simulations with 6 to 80 normal runs and .93-.97 with t5 ones; the bootstrap of pairs
    and its BCa form covered .87-.93.

    The interval belongs to the ratio of one pipeline: less noise does not by itself mean that two
    pipelines are told apart more often. See :func:`order_note` for the case where both metrics
    disagree.

    Examples
    --------
    >>> vanilla = [0.431, 0.436, 0.428, 0.440, 0.433, 0.429]
    >>> calibrated = [0.430, 0.433, 0.429, 0.435, 0.432, 0.430]
    >>> round(variance_reduction(vanilla, calibrated).value, 3)
    0.502
    """
    first = check_values("vanilla", vanilla, minimum=3)
    second = check_values("calibrated", calibrated, minimum=3)
    check_same_length(first, second, ("vanilla", "calibrated"))
    check_level("confidence_level", confidence_level)
    for name, values in (("vanilla", first), ("calibrated", second)):
        if np.ptp(values) == 0.0:
            raise UndefinedMetricError(
                f"{name} must vary over runs", f"{values[0]} in each", "Use runs of other seeds."
            )
    exponents = exponent_of(first), exponent_of(second)
    first, second = (scaled_by(v, e) for v, e in zip((first, second), exponents, strict=True))
    low, high = _log_ratio_interval(first, second, confidence_level)
    ratios = np.array([second.std(ddof=1) / first.std(ddof=1), np.exp(high), np.exp(low)])
    value, low, high = 1.0 - scaled_by(ratios, exponents[0] - exponents[1])
    return Reduction(
        value=float(value),
        low=float(low),
        high=float(high),
        n=len(first),
        approximate=len(first) < APPROXIMATE_BELOW,
        confidence_level=confidence_level,
    )


def _log_ratio_interval(
    vanilla: FloatArray, calibrated: FloatArray, level: float
) -> tuple[float, float]:
    n = len(vanilla)
    above, below = _squares_left_out(calibrated), _squares_left_out(vanilla)
    if not (above > 0.0).all() or not (below > 0.0).all():
        return -np.inf, np.inf
    error = np.sqrt((n - 1) * np.var(0.5 * np.log(above / below)))
    half = error * float(stdtrit(n - 1, 0.5 + level / 2.0))
    ratio = np.log(calibrated.std() / vanilla.std())
    return float(ratio - half), float(ratio + half)


def _squares_left_out(values: FloatArray) -> FloatArray:
    """Return the centred sum of squares without each value in turn, zero within rounding."""
    n = len(values)
    squares = (values - values.mean()) ** 2
    left = squares.sum() - n / (n - 1) * squares
    return np.where(left > 1e-12 * squares.sum(), left, 0.0)
