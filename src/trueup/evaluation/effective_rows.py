"""How many rows of equal weight say as much as weighted ones, and a word where these are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.losses import FloatArray
from trueup.losses.elementary import dot, scaled
from trueup.read.columns import read_weight
from trueup.user_warning import warn_user

_FEW, _FEW_SHARE, _LEAST_SHARE = 100, 0.5, 0.05


def effective_rows(weight: FloatArray) -> float:
    """Return Kish's effective sample size ``(sum w)^2 / sum w^2``.

    Examples
    --------
    >>> import numpy as np
    >>> effective_rows(np.array([1.0, 1.0, 0.0])), round(effective_rows(np.array([9.0, 1.0])), 3)
    (2.0, 1.22)
    """
    weight = scaled(weight)
    return float(weight.sum() ** 2 / dot(weight, weight))


def say_if_few(sample_weight: Any, n: int) -> None:
    """Warn where a few heavy rows decide, so that neither n nor a standard error tells the truth.

    They leave less than 5% of the rows, or less than 100 rows and half of them.
    """
    weight = read_weight(sample_weight, n, may_be_zero=False)
    if weight is None:
        return
    effective, rows = effective_rows(weight), int(np.count_nonzero(weight))
    if effective < _LEAST_SHARE * rows or (effective < _FEW and effective < _FEW_SHARE * rows):
        warn_user(
            f"the weights leave {effective:.3g} effective rows of {rows}, and the heaviest row has "
            f"{weight.max() / weight.sum():.0%} of all weight: standard errors and intervals are "
            "of few rows. Clip or stabilise the weights."
        )
