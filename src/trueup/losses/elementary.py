"""Elementary functions of arrays, without scipy: its import takes longer than most calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_BLAS_STAYS_ALONE = 10_000

SMALLEST, LARGEST = 1e-100, 1e100
"""Between these, squares and their sums over any number of rows keep all digits."""


@np.errstate(over="ignore")  # of logits below -709, whose probability is then 0
def expit(logit: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-logit))``."""
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products on this thread alone.

    For more than 10,000 numbers BLAS wakes its threads, which on a busy machine wait in a spin for
    longer than the sum takes.
    """
    return float(a @ b if len(a) <= _BLAS_STAYS_ALONE else np.einsum("i,i->", a, b))


def entropy(values: FloatArray) -> FloatArray:
    """Return ``x log(x)``, which is 0 at 0."""
    return np.asarray(values * np.log(np.where(values > 0.0, values, 1.0)))


def logsumexp(values: FloatArray, axis: int) -> FloatArray:
    """Return the logarithm of the sum of exponentials along an axis; -inf is nothing."""
    largest = values.max(axis=axis, keepdims=True)
    total = np.exp(values - largest).sum(axis=axis)
    return np.asarray(np.log(total) + largest.squeeze(axis))


def log_softmax(logit: FloatArray) -> FloatArray:
    """Return the logarithms of the probabilities of the columns, shape (n, k)."""
    return np.asarray(logit - logsumexp(logit, axis=1)[:, None])


def softmax(logit: FloatArray) -> FloatArray:
    """Return the probabilities of the columns, shape (n, k)."""
    share = np.exp(logit - logit.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def exponent_of(values: FloatArray) -> int:
    """Return the power of two that the largest magnitude is near to; 0 where no scaling is needed.

    That is where all are zero, or one is not finite.
    """
    if values.size == 0:
        return 0
    largest = max(float(values.max()), -float(values.min()))
    if SMALLEST <= largest <= LARGEST or largest == 0.0 or not np.isfinite(largest):
        return 0
    return int(np.frexp(largest)[1])


@np.errstate(over="ignore")  # infinity then stands for what is too large to matter
def scaled_by(values: FloatArray, exponent: int) -> FloatArray:
    """Return numbers divided by a power of two, of any number of dimensions."""
    return values if exponent == 0 else np.asarray(np.ldexp(values, -exponent))


def scaled(values: FloatArray) -> FloatArray:
    """Return numbers of which only the ratios matter, with squares that float64 can hold.

    Examples
    --------
    >>> import numpy as np
    >>> scaled(np.array([1.0, 3.0])).tolist(), scaled(np.array([2.0**700, 2.0**701])).tolist()
    ([1.0, 3.0], [0.25, 0.5])
    """
    return scaled_by(values, exponent_of(values))
