"""Origins: moments up to which a calibrator is fitted, each with the rows that come next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

IndexArray = NDArray[np.intp]

LEAST_ORIGINS = 4
"""Fewer say little about how far a change differs from one stretch of time to the next."""


@dataclass(frozen=True)
class Origin:
    """A moment: what was known by then, and what came next.

    Attributes
    ----------
    past, following : int arrays
        The rows up to the moment, in order of time, and the rows that are checked.
    until, checked_until : str
        Times of the last row of each; empty where the rows have no times.
    """

    past: IndexArray
    following: IndexArray
    until: str = ""
    checked_until: str = ""

    def window(self, length: int) -> IndexArray:
        """Return the newest rows of the past, all of them where it is shorter."""
        return self.past[-length:]


def cut_origins(times: NDArray[Any], check_fraction: float, n_origins: int) -> tuple[Origin, ...]:
    """Cut the newest share of the rows into parts of near equal size, each after an origin.

    Parameters
    ----------
    times : array of shape (n,)
        Sortable times; rows of one time stay together, so there may be fewer origins than asked.
    check_fraction : float
        Share of the rows in all parts.
    n_origins : int
        Number of origins.

    Raises
    ------
    InvalidInputError
        If the times leave no row before the first origin or none after it.
    """
    n, order = len(times), np.argsort(times, kind="stable")
    distinct, count = np.unique(times, return_counts=True)
    ends = np.cumsum(count)[:-1]  # rows up to and with each time but the last
    if not len(ends):
        raise InvalidInputError(
            "times must leave rows in both parts",
            f"{n} of {n} rows in part two",
            "Give more rows or finer times.",
        )
    wanted = n * (1.0 - check_fraction * np.arange(n_origins, 0, -1) / n_origins)
    chosen = np.unique(np.abs(ends[None, :] - wanted[:, None]).argmin(axis=1))
    bounds = [*ends[chosen].tolist(), n]
    last = [*chosen.tolist(), len(distinct) - 1]
    return tuple(
        Origin(
            order[: bounds[k]],
            order[bounds[k] : bounds[k + 1]],
            _shown(distinct[last[k]]),
            _shown(distinct[last[k + 1]]),
        )
        for k in range(len(chosen))
    )


def _shown(time: Any) -> str:
    """Return a number as it is, and a datetime without the zeros of midnight."""
    if not isinstance(time, np.datetime64):
        return str(time)
    day, _, clock = str(time).partition("T")
    clock = clock.rstrip("0.:") if not clock.strip("0.:") else clock.partition(".000")[0]
    return f"{day} {clock}".strip()


def random_halves(n: int, check_fraction: float, random_state: int) -> Origin:
    """Return two random parts of the rows, for rows that have no times."""
    shuffled = np.random.default_rng(random_state).permutation(n)
    checked = shuffled >= round((1.0 - check_fraction) * n)
    if not checked.any() or checked.all():
        raise InvalidInputError(
            "check_fraction must leave rows in both parts",
            f"{int(checked.sum())} of {n} rows in part two",
            "Give more rows.",
        )
    return Origin(np.flatnonzero(~checked), np.flatnonzero(checked))
