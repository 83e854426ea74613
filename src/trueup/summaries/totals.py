"""How many rows a summary stands for, and which."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np

from trueup._kernels import Engine
from trueup._kernels.hashing import FINGERPRINT_MODULUS
from trueup._kernels.plain import Absorbed
from trueup.arrays import Arrays
from trueup.errors import StateMismatchError
from trueup.read.rows import Rows
from trueup.splits import GroupArray
from trueup.summaries.storage import corrupt

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
