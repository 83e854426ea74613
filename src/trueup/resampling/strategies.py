"""From a resampling strategy to train-test splits, and whether they support an interval."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)

from trueup.errors import InvalidInputError
from trueup.resampling.bootstrap import Bootstrap, IndexArray

Pairs = tuple[tuple[IndexArray, IndexArray], ...]

_WITH_INTERVAL = (
    *(KFold, StratifiedKFold, GroupKFold, StratifiedGroupKFold),
    *(RepeatedKFold, RepeatedStratifiedKFold),
    *(ShuffleSplit, StratifiedShuffleSplit, GroupShuffleSplit),
)
_NO_INTERVAL = {
    Bootstrap: "training sets of the bootstrap repeat rows, which the correction does not model",
    LeaveOneOut: "single rows don't show how the error varies with the training set",
    TimeSeriesSplit: "time-ordered training sets grow, and their rows are not exchangeable",
}


@dataclass(frozen=True)
class Splits:
    """Train-test splits of one data set.

    Attributes
    ----------
    pairs : tuple of pairs of index arrays
        Training rows and test rows.
    name : str
        The strategy, as its repr.
    no_interval : str or None
        Why the strategy has no interval; None where it has one.
    """

    pairs: Pairs
    name: str
    no_interval: str | None

    @property
    def of_single_rows(self) -> bool:
        """Whether each test set is one row, as under leave-one-out."""
        return all(len(test) == 1 for _, test in self.pairs)


def read_splits(resampling: Any, X: Any, y: Any, groups: Any, *, classifier: bool) -> Splits:
    """Return the splits of a strategy: a splitter, a number of folds, or pairs of index arrays.

    Raises
    ------
    InvalidInputError
        If the strategy is none of them, gives no split or an empty part, or a row is on both sides.
    """
    if isinstance(resampling, str | type) or resampling is None:
        raise InvalidInputError(
            "resampling must be a splitter, a number of folds or pairs of index arrays",
            repr(resampling),
            "Pass for example sklearn.model_selection.KFold(5).",
        )
    splitter = check_cv(resampling, y, classifier=classifier)
    try:
        drawn = [*splitter.split(X, y, groups)]
    except ValueError as error:
        raise InvalidInputError(
            "resampling must suit the rows", str(error).rstrip("."), "Use fewer folds, or others."
        ) from error
    pairs = tuple((_positions(train), _positions(test)) for train, test in drawn)
    _check_pairs(pairs, resampling)
    is_splitter = isinstance(resampling, Integral) or hasattr(resampling, "split")
    name = repr(splitter) if is_splitter else "given splits"
    return Splits(pairs, name, _reason(splitter, pairs))


def _positions(rows: Any) -> IndexArray:
    array = np.asarray(rows)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(np.intp)


def _check_pairs(pairs: Pairs, resampling: Any) -> None:
    if not pairs or any(not len(train) or not len(test) for train, test in pairs):
        raise InvalidInputError(
            "resampling must give training sets and test sets with rows",
            repr(resampling),
            "Check the splits.",
        )
    for index, (train, test) in enumerate(pairs):
        if shared := np.intersect1d(train, test).tolist():
            raise InvalidInputError(
                "test rows must not be training rows",
                f"row {shared[0]} in both at index {index}",
                "Take it out of one of them.",
            )


def _reason(splitter: Any, pairs: Pairs) -> str | None:
    if all(len(test) == 1 for _, test in pairs):
        return _NO_INTERVAL[LeaveOneOut]
    for kind, reason in _NO_INTERVAL.items():
        if isinstance(splitter, kind):
            return reason
    if not isinstance(splitter, _WITH_INTERVAL):
        return "the corrected t interval is for k-fold, repeated k-fold and subsampling only"
    return "one test set shows no variation" if len(pairs) < 2 else None
