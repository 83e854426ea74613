"""Rows that say too little: a few heavy ones, and periods that no bias can be fitted on.

A month without a single positive is no reason to refuse all others. It is joined with the next, so
that the bias still comes from earlier rows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import UndefinedMetricError
from trueup.losses import FloatArray
from trueup.losses.elementary import dot, scaled
from trueup.read.columns import read_weight
from trueup.read.rows import Rows
from trueup.splits import GroupArray
from trueup.user_warning import warn_user

_NAMED = 3


def join_thin_periods(rows: Rows, groups: GroupArray) -> GroupArray:
    """Return groups in which each but the last can be fitted on; periods are in order of time.

    An UndefinedMetricError says that all together leave none to fit on before the last.
    """
    n_groups = int(groups.max()) + 1
    support = _support(rows, groups, n_groups)
    joined, gathered = np.zeros(n_groups, dtype=np.intp), np.zeros_like(support[0])
    thin = []
    for period in range(n_groups - 1):
        gathered = gathered + support[period]
        complete = bool(gathered.all())
        joined[period + 1] = joined[period] + complete
        if not complete:
            thin.append(period)
        else:
            gathered = np.zeros_like(gathered)
    if not thin:
        return groups
    names = _names(rows, groups, thin)
    if joined[-1] == 0:
        raise UndefinedMetricError(
            f"y_true must hold {_needed(rows)} in the periods before the last",
            f"none from {names}",
            "Use split=InSample(), or more rows.",
        )
    warn_user(
        f"{len(thin)} of {n_groups} periods lack {_needed(rows)} and are joined with the next one: "
        f"{names}. Use a longer period."
    )
    return np.asarray(joined[groups])


def _support(rows: Rows, groups: GroupArray, n_groups: int) -> NDArray[np.intp]:
    """Return per period how many rows there are of each thing that a bias needs."""
    if rows.loss.task != "counts":
        return rows.support(groups, n_groups)
    counted = rows.y_true > 0.0
    if rows.weight is not None:
        counted &= rows.weight > 0.0
    return np.bincount(groups[counted], minlength=n_groups)[:, None]


def _needed(rows: Rows) -> str:
    return "a positive count" if rows.loss.task == "counts" else "rows of every class"


def _names(rows: Rows, groups: GroupArray, periods: list[int]) -> str:
    """Name periods by their first row's time."""
    assert rows.times is not None
    first = [str(rows.times[groups == period].min()) for period in periods[:_NAMED]]
    more = len(periods) - len(first)
    return ", ".join(f"that of {name}" for name in first) + f" and {more} more" * (more > 0)


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
