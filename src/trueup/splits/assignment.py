"""Which rows fit the bias and which are scored.

A split puts each row into a group and says, for each scored group, which groups its bias comes
from. Nothing else is needed, so the same split works on arrays and on summaries of parts.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import UInt64Array
from trueup._kernels.hashing import HashRule
from trueup.arguments import check_fraction, whole_number
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.splits.periods import period_numbers, read_period

GroupArray = NDArray[np.intp]
_WHOLE = "Pass a whole number."


@dataclass(frozen=True)
class Part:
    """One scored group and the groups that its bias term is fitted on."""

    scored: int
    fitted_on: tuple[int, ...]


class Split(ABC):
    """Assignment of rows to groups, and of groups to bias and scoring.

    Examples
    --------
    >>> from trueup import CrossFit, Split
    >>> isinstance(CrossFit(5), Split)
    True
    """

    min_class_count: int = 1
    """Rows of each class that the bias rows must hold for the bias to mean something."""

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None where it depends on the rows, which then can't be summarised."""
        return None

    @abstractmethod
    def groups(self, row_id: UInt64Array, times: NDArray[Any] | None) -> GroupArray:
        """Return the group of each row, 0 to n_groups - 1."""

    @abstractmethod
    def parts(self, n_groups: int) -> Iterator[Part]:
        """Yield every scored group with the groups that calibrate it."""


class HashedSplit(Split):
    """A split whose groups are a hash of the row id, by one rule that compiled code knows too."""

    @property
    @abstractmethod
    def hash_rule(self) -> HashRule:
        """The rule."""

    def groups(self, row_id: UInt64Array, times: NDArray[Any] | None) -> GroupArray:
        return self.hash_rule.groups(row_id)


def kernel_rule(split: Split) -> HashRule | None:
    """Return the rule behind a split's groups; None where a class has ``groups`` of its own."""
    if isinstance(split, HashedSplit) and type(split).groups is HashedSplit.groups:
        return split.hash_rule
    return None


@dataclass(frozen=True)
class CrossFit(HashedSplit):
    """Algorithm 1 rotated: each fold is scored with the bias of all other folds.

    Parameters
    ----------
    folds : int, default 5
        Number of folds, at least 2. A row's fold is a hash of its id and never depends on the run.
    salt : int, default 0
        Another salt gives another partition.

    Notes
    -----
    The paper's Algorithm 1 scores the remaining rows only. Rotating it scores each row once,
    which removes the noise of having scored fewer rows than the vanilla metric.

    Examples
    --------
    >>> from trueup import CrossFit, evaluate
    >>> evaluate([0, 1] * 50, [0.4, 0.7] * 50, split=CrossFit(folds=2)).n_scored
    100
    """

    folds: int = 5
    salt: int = 0

    def __post_init__(self) -> None:
        _set(self, "folds", whole_number("folds", self.folds, 2, _WHOLE))
        _set(self, "salt", whole_number("salt", self.salt, None, _WHOLE))

    @property
    def n_groups(self) -> int:
        return self.folds

    @property
    def hash_rule(self) -> HashRule:
        return HashRule(self.salt, folds=self.folds)

    def parts(self, n_groups: int) -> Iterator[Part]:
        folds = tuple(range(self.folds))
        for fold in folds:
            yield Part(fold, folds[:fold] + folds[fold + 1 :])


@dataclass(frozen=True)
class HoldOut(HashedSplit):
    """The paper's Algorithm 1: fit the bias on one part of the rows, score the remaining ones.

    Parameters
    ----------
    bias_fraction : float, default 0.1
        Expected share of the rows that fit the bias, in (0, 1); they are not scored.
    salt : int, default 0
        Another salt gives another partition.

    Examples
    --------
    >>> from trueup import HoldOut, evaluate
    >>> result = evaluate([0, 1] * 200, [0.4, 0.7] * 200, split=HoldOut(bias_fraction=0.2))
    >>> result.n, result.n_scored < result.n
    (400, True)
    """

    bias_fraction: float = 0.1
    salt: int = 0

    min_class_count = 10

    def __post_init__(self) -> None:
        check_fraction("bias_fraction", self.bias_fraction, "The paper uses 0.1.")
        _set(self, "bias_fraction", float(self.bias_fraction))
        _set(self, "salt", whole_number("salt", self.salt, None, _WHOLE))

    @property
    def n_groups(self) -> int:
        return 2

    @property
    def hash_rule(self) -> HashRule:
        return HashRule(self.salt, limit=int(self.bias_fraction * 2.0**64))

    def parts(self, n_groups: int) -> Iterator[Part]:
        yield Part(scored=1, fitted_on=(0,))


@dataclass(frozen=True)
class InSample(HashedSplit):
    """Fit the bias and score on all rows.

    The simplest split, with the same ranking of pipelines as ``CrossFit``; its level is too low by
    about 1 / (2 n) nats for log loss.

    Examples
    --------
    >>> from trueup import InSample, evaluate
    >>> evaluate([0, 1] * 50, [0.4, 0.7] * 50, split=InSample()).bias_cost >= 0
    True
    """

    @property
    def n_groups(self) -> int:
        return 1

    @property
    def hash_rule(self) -> HashRule:
        return HashRule(folds=1)

    def parts(self, n_groups: int) -> Iterator[Part]:
        yield Part(scored=0, fitted_on=(0,))


@dataclass(frozen=True)
class Rolling(Split):
    """The bias of the previous period calibrates the next (Section 5.5 of the paper).

    Parameters
    ----------
    period : positive number, duration or "month"
        Length of a period, counted from the earliest time. A number is one of units of ``times``,
        which must be numbers. Datetimes take a duration, such as ``"7d"``, ``"12h"``, ``"30min"``,
        ``timedelta(days=7)``, or the timedelta of numpy or pandas; or calendar months of UTC. The
        first period is not scored. A period without rows is passed over: the bias comes from the
        latest earlier period that has rows. ``evaluate`` joins a period on which no bias can be
        fitted, such as one without positives, with the next, and says which.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup import Rolling, evaluate
    >>> days = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]").repeat(20)
    >>> result = evaluate([0, 1] * 40, [0.4, 0.7] * 40, split=Rolling("1d"), times=days)
    >>> result.n, result.n_scored
    (80, 60)
    """

    period: float | str | timedelta | np.timedelta64

    def __post_init__(self) -> None:
        _set(self, "period", read_period(self.period))

    def groups(self, row_id: UInt64Array, times: NDArray[Any] | None) -> GroupArray:
        if times is None:
            raise InvalidInputError(
                "times must be given with Rolling", "None", "Pass the time of each row."
            )
        order = period_numbers(times, read_period(self.period))
        return np.unique(order, return_inverse=True)[1].astype(np.intp)

    def parts(self, n_groups: int) -> Iterator[Part]:
        if n_groups < 2:
            raise UndefinedMetricError(
                f"times must span at least two periods of {self.period!r}",
                str(n_groups),
                "Use a shorter period.",
            )
        for period in range(1, n_groups):
            yield Part(period, (period - 1,))


def _set(split: Split, name: str, value: object) -> None:
    """Store a plain Python number, so that equal splits have equal reprs and fingerprints."""
    object.__setattr__(split, name, value)


_SPLITS: dict[str, type[Split]] = {
    split.__name__: split for split in (CrossFit, HoldOut, InSample, Rolling)
}
_WORD = re.compile(r"(\(\s*(?:period\s*=\s*)?)(\d+\s*[A-Za-z]+|[a-z]+)(?=\s*\))")
"""A bare word as the only argument."""


def parse_split(text: str) -> Split:
    """Return the split that a text such as ``repr(split)`` names; refuse any other text.

    It is the name of a split, with Python literals as arguments where it takes any: ``"CrossFit"``,
    ``"HoldOut(0.2, salt=1)"``, ``"Rolling('month')"``. The quotes of a duration or month may be
    left out. Nothing is executed.

    Examples
    --------
    >>> parse_split("CrossFit(folds=10)")
    CrossFit(folds=10, salt=0)
    >>> parse_split(repr(InSample()))
    InSample()
    >>> parse_split("Rolling(7d)")
    Rolling(period='7d')
    """
    try:
        call = ast.parse(_WORD.sub(r"\1'\2'", text.strip()), mode="eval").body
        if isinstance(call, ast.Name):
            return _SPLITS[call.id]()
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            return _SPLITS[call.func.id](
                *(ast.literal_eval(argument) for argument in call.args),
                **{str(word.arg): ast.literal_eval(word.value) for word in call.keywords},
            )
    except InvalidInputError:
        raise
    except (SyntaxError, KeyError, TypeError, ValueError) as error:
        raise _not_a_split(text) from error
    raise _not_a_split(text)


def _not_a_split(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"split must be one of {', '.join(_SPLITS)} with its arguments",
        repr(text),
        "Write it as in Python, such as CrossFit(folds=5).",
    )
