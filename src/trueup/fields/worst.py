"""The worst cells of a field: which levels are off by more than chance, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from trueup.fields.sums import LevelSums
from trueup.losses import FloatArray

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
