"""Periods that no bias can be fitted on, as of a month without a single positive: joined, and said.

One such month is no reason to refuse all others. It is joined with the next, so that the bias still
comes from earlier rows alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.errors import UndefinedMetricError
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
