"""The result of resampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.presentation import Line, Presented

Interval = tuple[float, float]


@dataclass(frozen=True)
class FoldResult:
    """What one test set gave.

    Attributes
    ----------
    n_train, n_test : int
        Rows of the training set and of the test set.
    vanilla : float or None
        The measure; None where it was computed on all test sets together only.
    calibrated : float or None
        The measure after the bias correction within the test set, where it was asked for.
    selected : mapping of str to value
        The configuration that a tuner selected on the training set; empty without a tuner.
    """

    n_train: int
    n_test: int
    vanilla: float | None
    calibrated: float | None
    selected: Mapping[str, Any]


@dataclass(frozen=True)
class GEEstimate(Presented):
    """An estimate of GE(inducer, n_train): the mean error over training sets of that size.

    It is not the risk of one model at hand.

    Attributes
    ----------
    measure : str
        Name of the loss or of the set-based measure.
    strategy : str
        The resampling strategy, as its repr.
    aggregate : str
        How the values of the test sets were brought together.
    vanilla : float
        The aggregated measure.
    calibrated : float or None
        The same after the bias correction; None where it was not asked for or does not exist.
    vanilla_interval, calibrated_interval : tuple of float or None
        Ends of the corrected resampled t interval; None where the strategy has none.
    folds : tuple of FoldResult
        One for each test set.
    n_train : float
        Mean number of rows of a training set.
    confidence_level : float
        Of the intervals.
    greater_is_better : bool or None
        Direction of the measure; None for a function that does not say.
    reasons : tuple of str
        Why something is missing, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import KFold
    >>> from trueup.resampling import generalization_error
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> estimate = generalization_error(LogisticRegression(), X, X[:, 0] > 0, KFold(4))
    >>> estimate.n_train, len(estimate.folds)
    (150.0, 4)
    """

    measure: str
    strategy: str
    aggregate: str
    vanilla: float
    calibrated: float | None
    vanilla_interval: Interval | None
    calibrated_interval: Interval | None
    folds: tuple[FoldResult, ...]
    n_train: float
    confidence_level: float
    greater_is_better: bool | None
    reasons: tuple[str, ...]

    @property
    def value(self) -> float:
        """The calibrated value where there is one, else the vanilla value."""
        return self.vanilla if self.calibrated is None else self.calibrated

    @property
    def interval(self) -> Interval | None:
        """The interval of :attr:`value`."""
        return self.vanilla_interval if self.calibrated is None else self.calibrated_interval

    @property
    def low(self) -> float | None:
        """Low end of the interval of :attr:`value`."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """High end of the interval of :attr:`value`."""
        return None if self.interval is None else self.interval[1]

    @property
    def n_splits(self) -> int:
        """Number of test sets."""
        return len(self.folds)

    def __str__(self) -> str:
        return self.summary()

    def lines(self) -> list[Line]:
        """Return the vanilla and the calibrated error with their intervals."""
        vanilla = Line(self.measure, self.vanilla, *(self.vanilla_interval or (None, None)))
        if self.calibrated is None:
            return [vanilla]
        ends = self.calibrated_interval or (None, None)
        return [Line(f"calibrated {self.measure}", self.calibrated, *ends), vanilla]

    def summary(self) -> str:
        """Return the estimate in a sentence."""
        name = self.measure if self.calibrated is None else f"calibrated {self.measure}"
        ends = "" if self.interval is None else " [{:.4g}, {:.4g}]".format(*self.interval)
        return (
            f"{name} {self.value:.4g}{ends} for training sets of {self.n_train:.0f} rows "
            f"({self.aggregate} over {self.n_splits} test sets of {self.strategy})"
        )
