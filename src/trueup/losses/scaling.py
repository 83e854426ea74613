"""Numbers so large or so small that their squares leave float64, brought back by a power of two."""

from __future__ import annotations

import numpy as np

from trueup.losses import FloatArray

SMALLEST, LARGEST = 1e-100, 1e100
"""Between these, squares and their sums over any number of rows keep all digits."""


def exponent_of(values: FloatArray) -> int:
    """Return the power of two that the largest magnitude is near to; 0 where no scaling is needed.

    Parameters
    ----------
    values : float array of shape (n,)
        Numbers; where one is not finite, or all are zero, the answer is 0.
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
