"""The calibration error over the levels of one field: the one result, from rows and from sums."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from trueup.fields.noise import Noise
from trueup.fields.sums import LevelSums, absolute_error, relative_error
from trueup.fields.worst import FieldCells, measure_cells
from trueup.losses import FloatArray
from trueup.presentation import Line, Presented

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
    """Put together what was measured of the levels of a field.

    Parameters
    ----------
    sums : LevelSums
        Of levels of positive weight.
    epsilon : float
        Of the Field-RCE.
    noise : Noise
        What chance does to the errors.
    p_value : float array of shape (k,)
        Of the probabilities of each level being right.
    """
    worst = measure_cells(sums, p_value)
    return FieldCalibration(
        ece=absolute_error(sums),
        rce=relative_error(sums, epsilon),
        floor=noise.ece_floor,
        floor_low=noise.ece_band[0],
        floor_high=noise.ece_band[1],
        rce_floor=noise.rce_floor,
        rce_floor_low=noise.rce_band[0],
        rce_floor_high=noise.rce_band[1],
        debiased=noise.debiased,
        debiased_low=noise.debiased_interval[0],
        debiased_high=noise.debiased_interval[1],
        n_levels=len(sums.names),
        n_discoveries=worst.n_discoveries,
        epsilon=epsilon,
        cells=worst,
    )
