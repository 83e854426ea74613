"""The calibration error over the levels of one field: the one result, from rows and from sums."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.fields.cells import LevelSums, absolute_error, relative_error
from trueup.fields.noise import Noise
from trueup.losses import FloatArray
from trueup.presentation import Line, Presented

FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class FieldCells:
    """Each level of a field, the most surprising first. All arrays have one entry for each level.

    Attributes
    ----------
    level : str array
        Name of the level.
    n : int array
        Rows.
    observed, predicted : float array
        Rate of positive labels and mean probability, weighted where weights were given.
    difference : float array
        Observed minus predicted: positive = predictions too low.
    p_value : float array
        Two-sided, Poisson-binomial, of the probabilities being right in the cell.
    q_value : float array
        Benjamini-Hochberg adjusted: the cells with q <= 0.05 hold at most 5% false discoveries in
        expectation.
    offset : float array
        Shift of the log-odds that the cell asks for, shrunk towards 0 by empirical Bayes.
    low, high : float array
        Interval of ``difference``: Clopper-Pearson, at the level 1 - 0.05 R / k for R
        discoveries among k cells, so that it holds for cells that were selected for being off. With
        weights, of Kish's effective number of rows.

    Examples
    --------
    >>> from trueup import field_calibration
    >>> sites = ["news"] * 50 + ["shop"] * 50
    >>> cells = field_calibration([0, 1] * 50, [0.5] * 50 + [0.7] * 50, sites).cells
    >>> cells.level.tolist(), cells.n.tolist(), cells.difference.round(2).tolist()
    (['shop', 'news'], [50, 50], [-0.2, 0.0])
    """

    level: NDArray[np.str_]
    n: NDArray[np.intp]
    observed: FloatArray
    predicted: FloatArray
    difference: FloatArray
    p_value: FloatArray
    q_value: FloatArray
    offset: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def n_discoveries(self) -> int:
        """Number of cells with q <= 0.05."""
        return int((self.q_value <= FALSE_DISCOVERY_RATE).sum())

    def to_columns(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays by name, for a table."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def measure_cells(sums: LevelSums, p_value: FloatArray) -> FieldCells:
    """Measure each level, given the p-value of its probabilities being right.

    References
    ----------
    Benjamini and Hochberg (1995) for the false discovery rate, Benjamini and Yekutieli (2005) for
    intervals of selected parameters, Korn and Graubard (1998) for those with weights.
    """
    q_value = benjamini_hochberg(p_value)
    observed, predicted = sums.label / sums.total, sums.proba / sums.total
    share = max(1, int((q_value <= FALSE_DISCOVERY_RATE).sum())) / len(p_value)
    low, high = _clopper_pearson(sums, FALSE_DISCOVERY_RATE * share)
    gap = np.abs(sums.label - sums.proba)
    order = np.lexsort((-gap, p_value))
    return FieldCells(
        level=np.array(sums.names)[order],
        n=sums.count[order],
        observed=observed[order],
        predicted=predicted[order],
        difference=(observed - predicted)[order],
        p_value=p_value[order],
        q_value=q_value[order],
        offset=shrunk_offsets(sums)[order],
        low=(low - predicted)[order],
        high=(high - predicted)[order],
    )


def shrunk_offsets(sums: LevelSums) -> FloatArray:
    """Return the log-odds offset of each level, with its variance over levels by moments.

    Notes
    -----
    To first order the sum of residuals of a level is ``m * offset`` plus noise of variance v, with
    m = sum w p (1 - p) and v = sum w^2 p (1 - p). The offsets' variance over levels that fits the
    squares of these sums is ``sum(s^2 - v) / sum(m^2)``, or 0.
    """
    s, v, m = sums.label - sums.proba, sums.variance, sums.slope
    spread = float((s**2 - v).sum())
    if spread <= 0.0:
        return np.zeros_like(s)
    size = m**2 + v * float((m**2).sum()) / spread
    return np.divide(s * m, size, out=np.zeros_like(s), where=size > 0.0)


def benjamini_hochberg(p_value: FloatArray) -> FloatArray:
    """Return the smallest false discovery rate at which each level is a discovery."""
    order = np.argsort(p_value)[::-1]
    n = len(p_value)
    q_value = np.empty(n)
    q_value[order] = np.minimum.accumulate(p_value[order] * n / np.arange(n, 0, -1))
    return np.clip(q_value, 0.0, 1.0)


def _clopper_pearson(sums: LevelSums, alpha: float) -> tuple[FloatArray, FloatArray]:
    from scipy.special import betaincinv  # loaded where fields are measured

    effective = sums.count / (1.0 + np.maximum(sums.weight_spread, 0.0))
    hits = effective * np.clip(sums.label / sums.total, 0.0, 1.0)
    misses = effective - hits
    any_hit, any_miss = hits > 1e-9 * effective, misses > 1e-9 * effective
    low = betaincinv(np.where(any_hit, hits, 1.0), misses + 1.0, 0.5 * alpha)
    high = betaincinv(hits + 1.0, np.where(any_miss, misses, 1.0), 1.0 - 0.5 * alpha)
    return np.where(any_hit, low, 0.0), np.where(any_miss, high, 1.0)


_WORST = 10


@dataclass(frozen=True)
class FieldCalibration(Presented):
    """Calibration error over the levels of one field, and what chance alone would score.

    Attributes
    ----------
    ece, rce : float
        Field-ECE (absolute, in probability units) and Field-RCE (relative to the rate of a level).
    floor, rce_floor : float
        Expected ``ece`` and ``rce`` of a perfect model on the same cells.
    floor_low, floor_high, rce_floor_low, rce_floor_high : float
        Central 95% of what a perfect model scores.
    debiased : float
        Mean over rows of the squared bias of their level, in squared probability units, with the
        noise taken out; may be negative.
    debiased_low, debiased_high : float
        95% interval of ``debiased``; None where each level has one row.
    n_levels : int
        Number of levels, a missing value counted as one.
    n_discoveries : int
        Levels that are off by more than chance at a false discovery rate of 5%.
    epsilon : float
        The epsilon of ``rce``.
    cells : FieldCells
        Each level, the most surprising first.

    Notes
    -----
    Where the rows are at hand ``floor`` and the p-values of ``cells`` follow from each of them.
    From summaries and files, whose rows are gone, they are those of the binomials that match the
    sums over each level.

    Examples
    --------
    >>> from trueup import field_calibration
    >>> sites = ["news"] * 50 + ["shop"] * 50
    >>> found = field_calibration([0, 1] * 50, [0.5] * 50 + [0.7] * 50, sites)
    >>> round(found.ece, 3), found.n_levels, found.cells.level[0].item()
    (0.1, 2, 'shop')
    """

    ece: float
    rce: float
    floor: float
    floor_low: float
    floor_high: float
    rce_floor: float
    rce_floor_low: float
    rce_floor_high: float
    debiased: float
    debiased_low: float | None
    debiased_high: float | None
    n_levels: int
    n_discoveries: int
    epsilon: float
    cells: FieldCells = field(repr=False, compare=False)

    def summary(self) -> str:
        """Return the error beside its floor, in a sentence."""
        return (
            f"ECE {self.ece:.4g} over {self.n_levels} levels, where a perfect model scores "
            f"{self.floor:.4g} [{self.floor_low:.4g}, {self.floor_high:.4g}]; "
            f"{self.n_discoveries} levels are off by more than chance."
        )

    def lines(self) -> list[Line]:
        """Return observed minus predicted rate of the most surprising levels, with intervals."""
        worst = self.cells
        columns = (worst.level, worst.difference, worst.low, worst.high)
        levels = zip(*(column[:_WORST].tolist() for column in columns), strict=True)
        return [Line(str(level), *numbers) for level, *numbers in levels]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, without the cells."""
        names = [part.name for part in fields(self) if part.name != "cells"]
        return {name: getattr(self, name) for name in names}


def calibration_of(
    sums: LevelSums, epsilon: float, noise: Noise, p_value: FloatArray
) -> FieldCalibration:
    """Put together what was measured of the k levels of a field; each has positive weight."""
    worst = measure_cells(sums, p_value)
    return FieldCalibration(
        ece=absolute_error(sums),
        rce=relative_error(sums, epsilon),
        **vars(noise),
        n_levels=len(sums.names),
        n_discoveries=worst.n_discoveries,
        epsilon=epsilon,
        cells=worst,
    )
