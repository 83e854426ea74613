"""Calibration errors: over the levels of a field, and over bins of the probability."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import engine
from trueup.errors import InvalidInputError, UndefinedMetricError, UnscorableInputError
from trueup.fields.cells import Cells, Levels, read_levels
from trueup.fields.noise import absolute_error, check_epsilon, measure_noise, relative_error
from trueup.fields.plain_columns import sums_by_bin, sums_by_code
from trueup.fields.worst import FieldCells, measure_cells
from trueup.losses import FloatArray
from trueup.losses.scaling import scaled
from trueup.read.columns import read_weight
from trueup.read.labels import read_binary_labels
from trueup.read.predictions import read_probabilities

_BLOCK = 16_384


@dataclass(frozen=True)
class FieldCalibration:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, without the cells."""
        names = [part.name for part in fields(self) if part.name != "cells"]
        return {name: getattr(self, name) for name in names}


def field_calibration(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    epsilon: float = 0.01,
    n_quantiles: int = 20,
    sample_weight: Any = None,
    name: str = "field",
    random_state: int = 0,
) -> FieldCalibration:
    """Measure the calibration error over the levels of one field, its noise and its worst cells.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row: strings, integers, categories; a missing value is a level of its own.
        Numbers with a fractional part are cut at their quantiles.
    epsilon : float, default 0.01
        Added to the label rate in the denominator of the Field-RCE; positive.
    n_quantiles : int, default 20
        Number of quantile bins of a field of fractional numbers.
    sample_weight : array-like of shape (n,), optional
        Weights. With them the floor is simulated.
    name : str
        Name of the field, for messages.
    random_state : int, default 0
        Seed of the simulated labels.

    Notes
    -----
    The floor of the Field-ECE is the sum of the mean absolute deviations of the cells' numbers of
    positives over n; that of the Field-RCE is simulated. The Field-ECE has no bootstrap interval:
    resampling adds the noise a second time, and the interval can exclude the value itself.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup import field_calibration
    >>> site = np.repeat(["a", "b"], 500)
    >>> y_true = np.tile([0, 0, 0, 0, 1], 200)
    >>> result = field_calibration(y_true, np.where(site == "a", 0.2, 0.3), site)
    >>> round(result.ece, 3), round(result.floor, 4), result.cells.level[0]
    (0.05, 0.0153, np.str_('b'))
    """
    check_epsilon(epsilon)
    cells = _collect(y_true, y_proba, read_levels(field, name, n_quantiles), sample_weight, name)
    cells = cells.keep(min_count=0)
    noise = measure_noise(cells, epsilon, random_state)
    worst = measure_cells(cells)
    return FieldCalibration(
        ece=absolute_error(cells),
        rce=relative_error(cells, epsilon),
        floor=noise.ece_floor,
        floor_low=noise.ece_band[0],
        floor_high=noise.ece_band[1],
        rce_floor=noise.rce_floor,
        rce_floor_low=noise.rce_band[0],
        rce_floor_high=noise.rce_band[1],
        debiased=noise.debiased,
        debiased_low=noise.debiased_interval[0],
        debiased_high=noise.debiased_interval[1],
        n_levels=len(cells.levels.names),
        n_discoveries=worst.n_discoveries,
        epsilon=epsilon,
        cells=worst,
    )


def field_calibration_error(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    relative: bool = False,
    epsilon: float = 0.01,
    min_count: int = 0,
    n_quantiles: int = 20,
    sample_weight: Any = None,
) -> float:
    """Return the Field-ECE, or the Field-RCE; lower is better.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row; a missing value is a level of its own. Numbers with a fractional part are
        cut at their quantiles.
    relative : bool, default False
        False: Field-ECE, Eq. 5. True: Field-RCE, Eq. 6.
    epsilon : float, default 0.01
        Added to the label rate in the denominator of the Field-RCE; positive.
    min_count : int, default 0
        Levels with fewer rows are left out.
    n_quantiles : int, default 20
        Number of quantile bins of a field of fractional numbers.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration: a simple and empirically strong method for reliable probabilistic
    predictions", Eq. 5 and 6.

    Examples
    --------
    >>> field_calibration_error([0, 1, 1, 0], [0.25, 0.5, 0.75, 0.5], ["a", "a", "b", "b"])
    0.125
    """
    check_epsilon(epsilon)
    sums = sums_by_code(y_true, y_proba, field, sample_weight)
    if sums is None:
        levels = read_levels(field, "field", n_quantiles)
        sums = _cell_sums(y_true, y_proba, levels, sample_weight)
    sums = sums[(sums[:, 5] >= min_count) & (sums[:, 0] > 0.0)]
    if len(sums) == 0:
        raise UndefinedMetricError(
            f"field must have a level with at least min_count={min_count} rows; got none. "
            "Lower min_count."
        )
    total, label_sum, proba_sum = sums.T[:3]
    gap = np.abs(label_sum - proba_sum)
    if relative:
        gap = gap / (label_sum / total + epsilon)
    return float(gap.sum() / total.sum())


def expected_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    sample_weight: Any = None,
) -> float:
    """Return the probability-level calibration error (Prob-ECE), in [0, 1]; lower is better.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    n_bins : int, default 15
        Number of bins of [0, 1], each open below and closed above.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal numbers of rows, whatever their weights.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration", Eq. 4.
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidInputError(
            f"n_bins must be an integer of at least 1; got {n_bins!r}. 15 is usual."
        )
    if strategy not in ("uniform", "quantile"):
        raise InvalidInputError(
            f'strategy must be "uniform" or "quantile"; got {strategy!r}. Choose one of the two.'
        )
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    sums = sums_by_bin(y_true, y_proba, sample_weight, inner) if strategy == "uniform" else None
    if sums is None:
        sums = _bin_sums(y_true, y_proba, sample_weight, inner, strategy)
    return float(np.abs(sums[:, 1] - sums[:, 2]).sum() / sums[:, 0].sum())


def _bin_sums(
    y_true: Any, y_proba: Any, sample_weight: Any, inner: FloatArray, strategy: str
) -> FloatArray:
    label, proba = read_binary_labels(y_true), read_probabilities(y_proba)
    _require_rows(len(label), (("y_proba", len(proba)),))
    weight = _read_scaled_weight(sample_weight, len(label))
    if strategy == "quantile":
        inner = np.quantile(proba, inner)
    sums = np.zeros((len(inner) + 1, 6))
    for start in range(0, len(label), _BLOCK):  # temporaries stay in the cache
        rows = slice(start, start + _BLOCK)
        bins = (_uniform_bins if strategy == "uniform" else _bins)(proba[rows], inner)
        part = None if weight is None else weight[rows]
        engine(len(label)).add_cells(bins, label[rows], proba[rows], part, sums)
    return sums


def _bins(proba: FloatArray, inner: FloatArray) -> NDArray[np.intp]:
    """Return the number of inner edges below each probability."""
    return np.searchsorted(inner, proba, side="left")


def _uniform_bins(proba: FloatArray, inner: FloatArray) -> NDArray[np.intp]:
    """Return the same for equal widths: a guess by arithmetic, corrected by the edges."""
    n_bins = len(inner) + 1
    guess = np.minimum((proba * n_bins).astype(np.intp), n_bins - 1)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return np.asarray(guess - (edges[guess] >= proba) + (edges[guess + 1] < proba))


def _collect(y_true: Any, y_proba: Any, levels: Levels, sample_weight: Any, name: str) -> Cells:
    label, proba = read_binary_labels(y_true), read_probabilities(y_proba)
    n = len(label)
    _require_rows(n, (("y_proba", len(proba)), (name, len(levels.codes))))
    weight = _read_scaled_weight(sample_weight, n)
    return Cells(levels, label, proba, np.ones(n) if weight is None else weight)


def _cell_sums(y_true: Any, y_proba: Any, levels: Levels, sample_weight: Any) -> FloatArray:
    """Return what the kernels sum over each level, shape (k, 6), in one pass."""
    label, proba = read_binary_labels(y_true), read_probabilities(y_proba)
    n = len(label)
    _require_rows(n, (("y_proba", len(proba)), ("field", len(levels.codes))))
    sums = np.zeros((len(levels.names), 6))
    engine(n).add_cells(levels.codes, label, proba, _read_scaled_weight(sample_weight, n), sums)
    return sums


def _read_scaled_weight(sample_weight: Any, n: int) -> FloatArray | None:
    weight = read_weight(sample_weight, n)
    return None if weight is None else scaled(weight)


def _require_rows(n: int, sizes: tuple[tuple[str, int], ...]) -> None:
    if n == 0:
        raise UnscorableInputError(
            "y_true must hold at least one row; got 0. Pass the validation rows."
        )
    for name, size in sizes:
        if size != n:
            raise InvalidInputError(
                f"{name} must have as many rows as y_true ({n}); got {size}. Pass all rows."
            )
