"""Observed rate against predicted probability, bin by bin: the diagram, and one number for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_fraction, check_one_of, whole_number
from trueup.errors import InvalidInputError
from trueup.fields.columns import read_binary_rows, sums_by_bin, sums_over
from trueup.losses import FloatArray
from trueup.losses.elementary import scaled
from trueup.read.columns import read_weight

_LARGEST_COUNT = 2.0**53


def weighted_quantiles(
    values: FloatArray, shares: FloatArray, weight: FloatArray | None
) -> FloatArray:
    """Return the quantiles of numpy's default kind.

    Integer weights count repetitions; others are first divided by their mean, so that their scale
    does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> values, half = np.array([1.0, 2.0, 4.0]), np.array([0.5])
    >>> weighted_quantiles(values, half, np.array([1.0, 1.0, 4.0])).tolist()
    [4.0]
    >>> np.quantile([1.0, 2.0, 4.0, 4.0, 4.0, 4.0], half).tolist()
    [4.0]
    """
    if weight is None:
        return np.quantile(values, shares)
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0.0]
    values, weight = values[order], _without_scale(weight[order])
    if weight.sum() > _LARGEST_COUNT or (weight != np.floor(weight)).any():
        weight = weight / weight.mean()
    ends = np.cumsum(weight)
    place = shares * (ends[-1] - 1.0)
    before = np.floor(place)
    low, high = (
        values[np.minimum(np.searchsorted(ends, at, side="right"), len(values) - 1)]
        for at in (before, before + 1.0)
    )
    part, step = place - before, high - low
    return np.asarray(np.where(part < 0.5, low + part * step, high - (1.0 - part) * step))


def _without_scale(weight: FloatArray) -> FloatArray:
    """Take the common power of two out of weights so large or so small that it can't be meant."""
    near_one = scaled(weight)
    if near_one is weight:
        return weight
    digits = np.ldexp(near_one, 53)
    if (digits != np.floor(digits)).any():
        return near_one
    whole = digits.astype(np.int64)
    every_bit = np.bitwise_or.reduce(whole)
    return np.asarray(whole / (every_bit & -every_bit))


_BLOCK = 16_384
_MOST_BINS = 1_000_000


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
        Bins of equal width, or of equal weight: integer weights equal repeated rows.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration", Eq. 4.

    Examples
    --------
    >>> from trueup import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 1], [0.2, 0.2, 0.7, 0.7], n_bins=2), 3)
    0.25
    """
    whole_number("n_bins", n_bins, 1, "15 is usual.")
    if n_bins > _MOST_BINS:
        raise InvalidInputError(f"n_bins must be at most {_MOST_BINS}", str(n_bins), "15 is usual.")
    check_one_of("strategy", strategy, ("uniform", "quantile"), "Choose one of the two.")
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    sums = sums_by_bin(y_true, y_proba, sample_weight, inner) if strategy == "uniform" else None
    if sums is None:
        sums = _bin_sums(y_true, y_proba, sample_weight, inner, strategy)
    return float(np.abs(sums[:, 1] - sums[:, 2]).sum() / sums[:, 0].sum())


def _bin_sums(
    y_true: Any, y_proba: Any, sample_weight: Any, inner: FloatArray, strategy: str
) -> FloatArray:
    rows = read_binary_rows(y_true, y_proba, sample_weight)
    if strategy == "quantile":
        inner = weighted_quantiles(rows.y_proba, inner, rows.weight)
    sums = np.zeros((len(inner) + 1, 3))
    for start in range(0, len(rows.y_true), _BLOCK):  # temporaries stay in the cache
        block = rows.only(slice(start, start + _BLOCK))
        bins = (_uniform_bins if strategy == "uniform" else _bins_of)(block.y_proba, inner)
        sums += sums_over(bins, block, len(sums))[:, 1:]
    return sums


def _bins_of(proba: FloatArray, inner: FloatArray) -> NDArray[np.intp]:
    """Return the number of inner edges below each probability."""
    return np.searchsorted(inner, proba, side="left")


def _uniform_bins(proba: FloatArray, inner: FloatArray) -> NDArray[np.intp]:
    """Return the same for equal widths: a guess by arithmetic, corrected by the edges."""
    n_bins = len(inner) + 1
    guess = np.minimum((proba * n_bins).astype(np.intp), n_bins - 1)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return np.asarray(guess - (edges[guess] >= proba) + (edges[guess + 1] < proba))


@dataclass(frozen=True)
class ReliabilityCurve:
    """Bins of the probability that hold rows, in increasing order; arrays of shape (n_bins,).

    ``mean_proba`` is the weighted mean probability, ``rate`` the weighted rate of the positive
    class with its Wilson interval in [0, 1], ``count`` the rows, ``weight`` the sum of weights.
    """

    mean_proba: FloatArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    count: NDArray[np.intp]
    weight: FloatArray


def reliability_curve(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "quantile",
    sample_weight: Any = None,
    confidence_level: float = 0.95,
) -> ReliabilityCurve:
    """Compare predicted probabilities with observed rates in bins of equal width or weight.

    Each bin is open below and closed above, and left out without rows; rare events ask for
    "quantile". ``confidence_level`` is that of the interval of each rate, for each bin by itself.

    Notes
    -----
    The interval treats the rows of a bin as equally probable, which makes it slightly wide; with
    weights it uses the effective number of rows, (sum w)^2 / sum w^2. The weighted mean of ``|rate
    - mean_proba|`` is the expected calibration error on the same bins.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.4, 0.7, 0.9], n_bins=2)
    >>> curve.mean_proba.round(2).tolist(), curve.rate.tolist()
    ([0.3, 0.8], [0.5, 1.0])
    """
    whole_number("n_bins", n_bins, 1, "15 is usual.")
    check_one_of("strategy", strategy, ("uniform", "quantile"), "Choose one of the two.")
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    rows = read_binary_rows(y_true, y_proba, others={"sample_weight": sample_weight})
    label, proba, given = rows.y_true, rows.y_proba, read_weight(sample_weight, len(rows.y_true))
    weight = np.ones(len(label)) if given is None else given
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    bins = _bins_of(
        proba, inner if strategy == "uniform" else weighted_quantiles(proba, inner, given)
    )
    total = _sums(bins, weight, n_bins)
    kept = total > 0.0
    rate = _sums(bins, weight * label, n_bins)[kept] / total[kept]
    relative = scaled(weight)
    effective = _sums(bins, relative, n_bins)[kept] ** 2 / _sums(bins, relative**2, n_bins)[kept]
    low, high = _wilson(rate, effective, confidence_level)
    return ReliabilityCurve(
        mean_proba=_sums(bins, weight * proba, n_bins)[kept] / total[kept],
        rate=rate,
        low=low,
        high=high,
        count=np.bincount(bins, minlength=n_bins)[kept],
        weight=total[kept],
    )


def _sums(bins: NDArray[np.intp], values: FloatArray, n_bins: int) -> FloatArray:
    return np.asarray(np.bincount(bins, weights=values, minlength=n_bins), dtype=np.float64)


def _wilson(
    rate: FloatArray, n: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.special import ndtri  # loaded where intervals are wanted

    z = ndtri(0.5 + confidence_level / 2.0)
    centre = (rate + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
    margin = z / (1.0 + z**2 / n) * np.sqrt(rate * (1.0 - rate) / n + z**2 / (4.0 * n**2))
    return np.maximum(centre - margin, 0.0), np.minimum(centre + margin, 1.0)
