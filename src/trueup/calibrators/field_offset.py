"""A line plot and, per level of each field, an offset that is shrunk as the data say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trueup.calibrators.base import Calibrator
from trueup.calibrators.inputs import (
    UNSEEN,
    FieldArrays,
    FloatArray,
    chosen_fields,
    codes_of,
    fit_levels,
    to_logit,
)
from trueup.calibrators.line_plot import LinePlot, fit_line_plot, quantile_knots, rows_at_knots

_ROUNDS = 2
_PASSES = 40
_TOLERANCE = 1e-4
_LEAST_VARIANCE = 1e-8
_LARGEST_STEP = 2.0


class FieldOffsetCalibrator(Calibrator):
    """Calibrated logit = line plot of the logit + one shrunk offset for each field's level.

    Parameters
    ----------
    fields : str or list of str, optional
        Names of the fields that get offsets; all fields given to ``fit`` by default.
    n_knots : int, default 50
        Knots of the line plot.
    ridge : float, default 3.0
        See :class:`ILPSCalibrator`.

    Attributes
    ----------
    line_plot_ : LinePlot
        The monotone map of the logit.
    levels_ : dict of FieldLevels
        The levels of each field.
    offsets_ : dict of arrays
        Offset of each code of a field, in logits; code 0 (unseen values) has offset 0.
    spreads_ : dict of float
        Estimated standard deviation of the true offsets of each field, in logits.

    Notes
    -----
    The offsets of a field are the posterior mode under a normal prior with mean zero, whose
    variance is estimated from the same rows (empirical Bayes, with the Laplace approximation and
    MacKay's fixed-point rule). A level with few rows therefore moves little, and a field without
    miscalibration gets offsets near zero. Offsets and line plot are fitted in turns.

    This is no method of the paper: it is what its bivariate ablation, ILPS and field z, becomes
    with an explicit offset per level in place of a network.

    Examples
    --------
    >>> import numpy as np
    >>> site = np.repeat(["a", "b"], 400)
    >>> p, y = np.full(800, 0.5), np.repeat([0, 1, 0, 1], [300, 100, 100, 300])
    >>> calibrator = FieldOffsetCalibrator().fit(p, y, fields={"site": site})
    >>> new = calibrator.predict_proba([0.5] * 3, fields={"site": np.array(["a", "b", "new"])})
    >>> new[:, 1].round(2).tolist()
    [0.25, 0.75, 0.5]
    """

    state_names = ("line_plot_", "levels_", "offsets_", "spreads_")

    def __init__(
        self,
        *,
        fields: str | list[str] | None = None,
        n_knots: int = 50,
        ridge: float = 3.0,
    ) -> None:
        self.fields = fields
        self.n_knots = n_knots
        self.ridge = ridge

    def _fit(self, p: FloatArray, y: FloatArray, fields: FieldArrays, weight: FloatArray) -> None:
        margin = to_logit(p)
        columns = chosen_fields(fields, self.fields, type(self).__name__)
        self.levels_ = {name: fit_levels(column) for name, column in columns.items()}
        codes = codes_of(self.levels_, columns, type(self).__name__)
        start = {name: Offsets.none(level.n_codes) for name, level in self.levels_.items()}
        knots = quantile_knots(margin, weight, self.n_knots)
        self.line_plot_, offsets = fit_in_turns(
            margin, y, weight, codes, start, knots=knots, ridge=self.ridge
        )
        self.offsets_ = {name: part.values for name, part in offsets.items()}
        self.spreads_ = {name: part.variance**0.5 for name, part in offsets.items()}

    def _calibrate(self, p: FloatArray, fields: FieldArrays) -> FloatArray:
        codes = codes_of(self.levels_, fields, type(self).__name__)
        margin = self.line_plot_(to_logit(p))
        return np.asarray(expit(margin + total_offset(codes, self.offsets_, len(p))))


@dataclass(frozen=True)
class Offsets:
    """Offsets of one field's codes and the variance of their prior."""

    values: FloatArray
    variance: float

    @classmethod
    def none(cls, n_codes: int) -> Offsets:
        """Return zero offsets with a prior wide enough to move."""
        return cls(np.zeros(n_codes), 0.1)


def total_offset(
    codes: Mapping[str, NDArray[np.intp]], offsets: Mapping[str, FloatArray], n: int
) -> FloatArray:
    """Return the sum over the fields of each row's offset, shape (n,)."""
    total = np.zeros(n)
    for name, code in codes.items():
        total += offsets[name][code]
    return total


def fit_in_turns(
    margin: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    codes: Mapping[str, NDArray[np.intp]],
    start: Mapping[str, Offsets],
    *,
    knots: FloatArray,
    ridge: float,
    fixed: FloatArray | float = 0.0,
) -> tuple[LinePlot, dict[str, Offsets]]:
    """Fit the line plot and the offsets in turns, each array of shape (n,).

    Logits ``fixed`` are added to both; ``start`` is where the offsets of each field begin,
    ``ridge`` that of :func:`fit_line_plot`.
    """
    offsets = dict(start)
    for _ in range(_ROUNDS if codes else 1):
        shift = total_offset(codes, {name: o.values for name, o in offsets.items()}, len(y))
        rows = rows_at_knots(margin, knots, True, shift + fixed)
        heights = fit_line_plot(rows, y, weight, knots, ridge=ridge)
        line_plot = LinePlot(knots, heights, unit_tails=True)
        offsets = fit_offsets(line_plot(margin) + fixed, y, weight, codes, offsets)
    return line_plot, offsets


def fit_offsets(
    eta: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    codes: Mapping[str, NDArray[np.intp]],
    start: Mapping[str, Offsets],
) -> dict[str, Offsets]:
    """Return the offsets of every field by Newton steps in turns; ``eta`` is without them."""
    offsets = dict(start)
    total = eta + total_offset(codes, {name: o.values for name, o in offsets.items()}, len(y))
    for _ in range(_PASSES):
        largest = 0.0
        for name, code in codes.items():
            moved, step = _improve(offsets[name], total, y, weight, code)
            total = total + step[code]
            largest = max(largest, float(np.abs(step).max()))
            offsets[name] = moved
        if largest < _TOLERANCE:
            break
    return offsets


def _improve(
    old: Offsets, eta: FloatArray, y: FloatArray, weight: FloatArray, code: NDArray[np.intp]
) -> tuple[Offsets, FloatArray]:
    """One Newton step of a field's offsets and one update of its prior's variance."""
    n_codes = len(old.values)
    p = expit(eta)
    information = np.bincount(code, weight * p * (1.0 - p), n_codes)
    score = np.bincount(code, weight * (y - p), n_codes) - old.values / old.variance
    curvature = information + 1.0 / old.variance
    step = np.clip(score / curvature, -_LARGEST_STEP, _LARGEST_STEP)
    step[UNSEEN] = 0.0
    values = old.values + step
    determined = float((information / curvature).sum())  # MacKay's effective number of offsets
    variance = float(values @ values) / max(determined, _LEAST_VARIANCE)
    return Offsets(values, max(variance, _LEAST_VARIANCE)), step
