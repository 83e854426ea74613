"""The grid of logits on which rows are summarised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_BINS = 190
"""Bins of a grid."""

BINS_PER_UNIT = 2.5
"""Bins in one unit of the logit: exact in binary, so that rows below LIMIT never round up to it."""

WIDTH = 1.0 / BINS_PER_UNIT
"""Width of a bin, in logits."""

LIMIT = 0.5 * N_BINS / BINS_PER_UNIT
"""The grid is [-LIMIT, LIMIT), here 38; float64 probabilities lie inside, at most 36.05."""

ORDER = 8
"""Moments of a bin: functions with a Taylor radius of pi are integrated to about 1e-12."""

_LINE = 64


def new_table(n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return zeros that start on a line of the cache: a row of eight numbers is then one line."""
    size = n_rows * n_columns
    spare = np.zeros(size + _LINE // 8)
    start = -spare.ctypes.data % _LINE // 8
    return spare[start : start + size].reshape(n_rows, n_columns)
