"""Quantiles of weighted values that are those of repeated ones where the weights are integers."""

from __future__ import annotations

import numpy as np

from trueup.losses import FloatArray
from trueup.losses.elementary import scaled

_LARGEST_COUNT = 2.0**53


def weighted_quantiles(
    values: FloatArray, shares: FloatArray, weight: FloatArray | None
) -> FloatArray:
    """Return the quantiles of numpy's default kind.

    Parameters
    ----------
    values : float array of shape (n,)
        Values, at least one of positive weight.
    shares : float array
        In [0, 1].
    weight : float array of shape (n,), optional
        Non-negative weights. Integers count repetitions; others are first divided by their mean, so
        that their scale does not matter.

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
