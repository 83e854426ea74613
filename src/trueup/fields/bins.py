"""The calibration error over bins of the probability."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_one_of, whole_number
from trueup.errors import InvalidInputError
from trueup.fields.columns import read_binary_rows, sums_by_bin, sums_over
from trueup.fields.quantiles import weighted_quantiles
from trueup.losses import FloatArray

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
        bins = (_uniform_bins if strategy == "uniform" else _bins)(block.y_proba, inner)
        sums += sums_over(bins, block, len(sums))[:, 1:]
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
