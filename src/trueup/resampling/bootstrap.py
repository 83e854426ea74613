"""Bootstrap sampling, as a splitter of scikit-learn's kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

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
        if not isinstance(self.n_splits, (int, np.integer)) or self.n_splits < 1:
            raise InvalidInputError(
                "n_splits must be a positive integer", repr(self.n_splits), "30 is usual."
            )

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Return the number of draws."""
        return self.n_splits

    def split(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        groups: Any = None,  # noqa: ARG002
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the rows of each training set, with repetitions, and of its test set.

        Raises
        ------
        InvalidInputError
            If there are fewer than two rows.
        """
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
