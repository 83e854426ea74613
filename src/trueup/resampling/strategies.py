"""From a resampling strategy, one of scikit-learn's or the bootstrap, to train-test splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from trueup.arguments import whole_number
from trueup.errors import InvalidInputError

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Bootstrap:
    """Draw n training rows with replacement; test on the rows that were not drawn.

    Parameters
    ----------
    n_splits : int, default 30
        Number of draws, at least 1.
    random_state : int, RandomState or None
        Seed of the draws; None draws anew each time.

    Notes
    -----
    A training set holds n rows, of which about 63.2% are distinct, so the error of an inducer that
    gains from more distinct rows is overestimated. A draw that leaves no row out is drawn again.

    Examples
    --------
    >>> from trueup.resampling import Bootstrap
    >>> train, test = next(Bootstrap(random_state=0).split([0, 1, 2, 3, 4]))
    >>> train.tolist(), test.tolist()
    ([4, 0, 3, 3, 3], [1, 2])
    """

    n_splits: int = 30
    random_state: Any = None

    def __post_init__(self) -> None:
        whole_number("n_splits", self.n_splits, 1, "30 is usual.")

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return the number of draws."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        groups: Any = None,  # noqa: ARG002
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the rows of each training set, with repetitions, and of its test set."""
        n = _num_samples(X)
        if n < 2:
            raise InvalidInputError("X must hold at least 2 rows", str(n), "Pass more rows.")
        random = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            test = np.empty(0, dtype=np.intp)
            while not len(test):
                train = random.randint(0, n, size=n).astype(np.intp)
                test = np.setdiff1d(np.arange(n), train)
            yield train, test


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
    """Train-test splits of one data set, and why their strategy has no interval, if it has none."""

    pairs: Pairs
    name: str
    no_interval: str | None

    @property
    def of_single_rows(self) -> bool:
        """Whether each test set is one row, as under leave-one-out."""
        return all(len(test) == 1 for _, test in self.pairs)


def read_splits(resampling: Any, X: Any, y: Any, groups: Any, *, classifier: bool) -> Splits:
    """Return the splits of a strategy: a splitter, a number of folds, or pairs of index arrays.

    Refused are others, those that give no split or an empty part, and a row on both sides.
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
