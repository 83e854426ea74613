"""The result of a field of predicted numbers: how far they are off on each level."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.fields.worst import FALSE_DISCOVERY_RATE, benjamini_hochberg
from trueup.losses import FloatArray


@dataclass(frozen=True)
class FieldResiduals:
    """How far predicted numbers are off on each level; the most surprising first.

    Arrays have one entry for each level.

    Attributes
    ----------
    error : float
        Mean absolute error of the levels: of counts, ``sum |actual - expected| / sum expected``; of
        targets, the mean over rows of the absolute mean residual of their level.
    floor : float
        What a right model would score on average on the same levels.
    dispersion : float
        Of counts, the variance in units of a Poisson variance, at least 1; it widens intervals. Of
        targets 1.
    level : str array
        Name of the level.
    n : int array
        Rows.
    actual, expected : float array
        Sums of counts; means of targets and of predictions.
    value : float array
        Of counts, actual over expected; of targets, actual minus expected.
    low, high : float array
        Interval of ``value`` for each level by itself.
    p_value, q_value : float array
        Two-sided, of the predictions being right on the level; Benjamini-Hochberg adjusted.
    confidence_level : float
        Of the intervals.

    Examples
    --------
    >>> from trueup.fields.count_ratio import actual_over_expected
    >>> found = actual_over_expected([3, 1, 0, 0], [1.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"])
    >>> found.level.tolist(), found.value.tolist()
    (['b', 'a'], [0.0, 2.0])
    """

    error: float
    floor: float
    dispersion: float
    level: NDArray[np.str_]
    n: NDArray[np.intp]
    actual: FloatArray
    expected: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    q_value: FloatArray
    confidence_level: float

    @property
    def n_discoveries(self) -> int:
        """Number of levels with q <= 0.05."""
        return int((self.q_value <= FALSE_DISCOVERY_RATE).sum())

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for a table; the worst level first."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: values for name, values in arrays.items() if isinstance(values, np.ndarray)}


@dataclass(frozen=True)
class LevelValues:
    """What was measured on each level, in the order of the levels; see :class:`FieldResiduals`."""

    n: NDArray[np.intp]
    actual: FloatArray
    expected: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray


def worst_first(
    names: tuple[str, ...],
    levels: LevelValues,
    *,
    error: float,
    floor: float,
    dispersion: float,
    confidence_level: float,
) -> FieldResiduals:
    """Return the result with the most surprising level first."""
    gap = np.abs(levels.actual - levels.expected) * levels.n
    order = np.lexsort((-gap, levels.p_value))
    return FieldResiduals(
        error=error,
        floor=floor,
        dispersion=dispersion,
        confidence_level=confidence_level,
        level=np.array(names)[order],
        q_value=benjamini_hochberg(levels.p_value)[order],
        **{part.name: getattr(levels, part.name)[order] for part in fields(levels)},
    )
