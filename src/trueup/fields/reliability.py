"""Observed rate against predicted probability, bin by bin: what a reliability diagram shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trueup.arguments import check_fraction, check_one_of
from trueup.errors import InvalidInputError
from trueup.fields.quantiles import weighted_quantiles
from trueup.losses import FloatArray
from trueup.losses.elementary import scaled
from trueup.read.columns import read_weight
from trueup.read.targets import read_binary_labels, read_probabilities


@dataclass(frozen=True)
class ReliabilityCurve:
    """Bins of the probability that hold rows, in increasing order; arrays of shape (n_bins,).

    Attributes
    ----------
    mean_proba : float array
        Weighted mean probability.
    rate : float array
        Weighted rate of the positive class.
    low, high : float array
        Wilson interval of the rate, in [0, 1].
    count : int array
        Number of rows.
    weight : float array
        Sum of weights; the number of rows without weights.
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
    """Compare predicted probabilities with observed rates in bins.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    n_bins : int, default 15
        Number of bins; bins without rows are left out.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal weight, which rare events ask for. Each bin is open below
        and closed above.
    sample_weight : array-like of shape (n,), optional
        Weights.
    confidence_level : float, default 0.95
        Of the interval of each rate, for each bin by itself.

    Returns
    -------
    ReliabilityCurve
        One entry for each bin that holds rows.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.

    Notes
    -----
    The interval treats the rows of a bin as equally probable, which makes it slightly wide; with
    weights it uses the effective number of rows, (sum w)^2 / sum w^2. The weighted mean of
    ``|rate - mean_proba|`` is the expected calibration error on the same bins.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.4, 0.7, 0.9], n_bins=2)
    >>> curve.mean_proba.round(2).tolist(), curve.rate.tolist()
    ([0.3, 0.8], [0.5, 1.0])
    """
    _check_options(n_bins, strategy, confidence_level)
    label, proba = read_binary_labels(y_true), read_probabilities(y_proba)
    if len(label) != len(proba) or len(label) == 0:
        raise InvalidInputError(
            (
                f"y_proba must have one probability for each row of y_true ({len(label)}), and at "
                "least one"
            ),
            f"{len(proba)}",
            "Pass all rows.",
        )
    given = read_weight(sample_weight, len(label))
    weight = np.ones(len(label)) if given is None else given
    bins = _bins(proba, n_bins, strategy, given)
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


def _check_options(n_bins: int, strategy: str, confidence_level: float) -> None:
    if n_bins < 1:
        raise InvalidInputError("n_bins must be at least 1", repr(n_bins), "15 is usual.")
    check_one_of("strategy", strategy, ("uniform", "quantile"), "Choose one of the two.")
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")


def _bins(
    proba: FloatArray, n_bins: int, strategy: str, weight: FloatArray | None
) -> NDArray[np.intp]:
    inner = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    edges = inner if strategy == "uniform" else weighted_quantiles(proba, inner, weight)
    return np.searchsorted(edges, proba, side="left")


def _sums(bins: NDArray[np.intp], values: FloatArray, n_bins: int) -> FloatArray:
    return np.asarray(np.bincount(bins, weights=values, minlength=n_bins), dtype=np.float64)


def _wilson(
    rate: FloatArray, n: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    z = ndtri(0.5 + confidence_level / 2.0)
    centre = (rate + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
    margin = z / (1.0 + z**2 / n) * np.sqrt(rate * (1.0 - rate) / n + z**2 / (4.0 * n**2))
    return np.maximum(centre - margin, 0.0), np.minimum(centre + margin, 1.0)
