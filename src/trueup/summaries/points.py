"""What stands for the rows of a summary, and when it can't."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from trueup._kernels import Engine
from trueup._kernels.hashing import FINGERPRINT_MODULUS
from trueup._kernels.plain import Absorbed, PlainRows
from trueup.arrays import Arrays
from trueup.errors import InexactSummaryError, StateMismatchError, UndefinedMetricError
from trueup.losses import FloatArray, Loss
from trueup.losses.elementary import LARGEST, SMALLEST
from trueup.read.rows import Rows
from trueup.scoring.result import Evaluation
from trueup.splits import GroupArray
from trueup.summaries.storage import corrupt

SMALLEST_SUM = 1e-290
"""Sums of powers below it have lost digits: float64 is exact down to 1e-308."""


@dataclass(frozen=True)
class Points:
    """Weighted points, named as the arguments of :class:`trueup.scoring.algorithm.Sample`."""

    y_true: FloatArray
    margin: FloatArray
    weight: FloatArray
    squared_weight: FloatArray
    group: GroupArray


class State(ABC):
    """Mergeable sums from which the points are made."""

    loss_of_points: ClassVar[Loss | None] = None
    """The loss of a point, where it is another function than that of a row."""

    @abstractmethod
    def add(self, rows: Rows, groups: GroupArray, kernels: Engine) -> None:
        """Add a block of rows."""

    def absorb(self, rows: PlainRows, kernels: Engine) -> Absorbed | None:  # noqa: ARG002
        """Add leading rows in one pass without checks before it; None where there is no such."""
        return None

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add the rows of another state."""

    @abstractmethod
    def points(self) -> Points:
        """Return the points."""

    def keeps_digits(self) -> bool:
        """Return whether the sums are far enough from the ends of float64."""
        return True

    def exact_biases(self) -> tuple[float, float]:
        """Return the range of bias terms for which the points are as good as the rows."""
        return -np.inf, np.inf

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Return the sums."""

    def pattern(self, arrays: Arrays) -> Arrays:  # noqa: ARG002 - some have optional sums
        """Return arrays as a state of this size keeps them, for a comparison with stored ones."""
        return self.to_arrays()

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Take the sums of ``to_arrays``."""


def concatenate(parts: list[Points]) -> Points:
    """Return the points of all parts."""
    names = ("y_true", "margin", "weight", "squared_weight", "group")
    return Points(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@np.errstate(over="ignore", invalid="ignore")
def require_total_weight(weight: FloatArray) -> None:
    """Refuse weights whose squares have left float64; none at all are left to others."""
    total = float(weight.sum())
    if weight.any() and not SMALLEST <= total <= LARGEST:
        raise InexactSummaryError(
            f"sample_weight must add up to a number between {SMALLEST} and {LARGEST} in a summary",
            f"{total:g}",
            "Rescale the weights, or pass the rows to evaluate().",
        )


def require_magnitude(state: State, weight: FloatArray) -> None:
    """Refuse weights and numbers whose powers have left float64, and no weight at all."""
    if not state.keeps_digits():
        raise InexactSummaryError(
            (
                "targets, predictions and weights must be such that float64 can hold their powers "
                "in a summary"
            ),
            "some too large or too small",
            "Rescale them, or pass the rows to evaluate().",
        )
    if not weight.any():  # only of forged bytes
        raise UndefinedMetricError(
            "summary must hold a positive weight", "zeros only", "Compute it again."
        )
    require_total_weight(weight)


def require_exact_biases(state: State, evaluation: Evaluation) -> None:
    """Refuse a bias term that moves far logits to where the loss is curved."""
    low, high = state.exact_biases()
    biases = np.array([evaluation.bias_term, *evaluation.fold_bias_terms])
    outside = (biases < low) | (biases > high)
    if outside.any():
        raise InexactSummaryError(
            "y_logit must be within 38 of 0 in a summary whose bias is beyond 10",
            f"a bias of {biases[outside][0]:g}",
            (
                "Check that they are natural log-odds, or pass the rows, or a sample of them, to "
                "evaluate()."
            ),
        )


_FINGERPRINT = re.compile("[0-9a-f]{32}")


class RowTotals:
    """Rows of each group, rows of positive weight of each class, and the fingerprint.

    ``positional`` says that the rows are known by position; None while there are no rows.
    """

    def __init__(self, n_groups: int, n_classes: int) -> None:
        self.row_counts = np.zeros(n_groups, dtype=np.int64)
        self.support = np.zeros((n_groups, n_classes), dtype=np.int64)
        self.fingerprint = 0
        self.positional: bool | None = None

    def add(self, rows: Rows, groups: GroupArray, kernels: Engine) -> None:
        n_groups = len(self.row_counts)
        support = rows.support(groups, n_groups)
        self.support += support
        self.row_counts += (
            support.sum(axis=1) if rows.weight is None else np.bincount(groups, minlength=n_groups)
        )
        self._add_hashes(*kernels.hash_sums(rows.row_id, rows.y_true, rows.weight))

    def absorb(self, rows: Absorbed) -> None:
        self.support += rows.support
        self.row_counts += rows.row_counts.sum(axis=1)
        self._add_hashes(rows.low, rows.high)

    def merge(self, other: Self) -> None:
        if self.positional is not None and self.positional != other.positional:
            raise StateMismatchError(
                "row_id must be given for all rows or for none",
                "both",
                "Pass row_id to every update().",
            )
        self.positional = other.positional
        self.row_counts = self.row_counts + other.row_counts
        self.support = self.support + other.support
        self.fingerprint = (self.fingerprint + other.fingerprint) % FINGERPRINT_MODULUS

    def to_json(self) -> dict[str, Any]:
        return {"fingerprint": f"{self.fingerprint:032x}", "positional": self.positional}

    def to_arrays(self) -> Arrays:
        return {"row_counts": self.row_counts, "support": self.support}

    @classmethod
    def restored(cls, plain: Any, arrays: Arrays) -> Self:
        """Return the totals of ``to_json`` and ``to_arrays``; refuse what is no fingerprint."""
        positional = plain.get("positional") if isinstance(plain, dict) else plain
        if not isinstance(plain, dict) or (positional is not None and type(positional) is not bool):
            raise corrupt("totals")
        if not _FINGERPRINT.fullmatch(str(plain.get("fingerprint"))):
            raise corrupt("a fingerprint of 32 hexadecimal digits")
        totals = cls(*arrays["support"].shape)
        totals.row_counts, totals.support = arrays["row_counts"], arrays["support"]
        totals.fingerprint, totals.positional = int(plain["fingerprint"], 16), positional
        return totals

    def _add_hashes(self, low: int, high: int) -> None:
        self.fingerprint = (self.fingerprint + low + (high << 64)) % FINGERPRINT_MODULUS
