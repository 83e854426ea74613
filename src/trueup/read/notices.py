"""What is valid in the columns of a call, but should be said once for all of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.losses import FloatArray
from trueup.user_warning import warn_user

SATURATING_LOGIT = {np.dtype(np.float32): 16.6, np.dtype(np.float16): 7.6}
"""Logit from which a probability of that type is exactly 1."""
_HEAD = 16
_TELLING_ROWS = 10
"""With fewer rows, equal columns and logits in [0, 1] may be chance."""


@dataclass
class Notices:
    """What is valid, but should be said once for all rows of a call."""

    n_saturated: int = 0
    saturated_dtype: np.dtype[Any] | None = None
    n_clipped: int = 0
    n_seen: int = 0
    n_equal: int = 0
    logit_range: tuple[float, float] = (np.inf, -np.inf)

    def look(
        self, y_true: FloatArray, given: FloatArray, weight: FloatArray | None, *, is_logit: bool
    ) -> None:
        """Keep what tells that a column is not what it is said to be; a few rows tell mostly."""
        head = given[:_HEAD]
        n = len(given) if weight is None else int(np.count_nonzero(weight))
        self.n_seen += n
        if np.array_equal(head, y_true[:_HEAD]) and np.array_equal(given, y_true):
            self.n_equal += n
        if is_logit:
            values = given if head.min() >= 0.0 and head.max() <= 1.0 else head
            self._widen(float(values.min()), float(values.max()))

    def _widen(self, low: float, high: float) -> None:
        self.logit_range = min(self.logit_range[0], low), max(self.logit_range[1], high)

    def add(self, other: Notices) -> None:
        """Count the rows of another part of the call."""
        self.n_saturated += other.n_saturated
        self.saturated_dtype = self.saturated_dtype or other.saturated_dtype
        self.n_clipped += other.n_clipped
        self.n_seen += other.n_seen
        self.n_equal += other.n_equal
        self._widen(*other.logit_range)

    def warn(self) -> None:
        """Warn the caller of trueup."""
        if self.saturated_dtype is not None:
            dtype = self.saturated_dtype
            warn_user(
                f"{self.n_saturated} {dtype} predictions are exactly 1.0: {dtype} probabilities "
                f"saturate at a logit of {SATURATING_LOGIT[dtype]}. "
                "Pass y_logit, or float64 probabilities.",
            )
        if self.n_clipped:
            warn_user(
                f"{self.n_clipped} predictions are 0 or 1, or closer to it than float64's eps; "
                "the logarithm is clipped at eps.",
            )
        if self.n_seen >= _TELLING_ROWS:
            self._warn_of_mistaken_columns()

    def _warn_of_mistaken_columns(self) -> None:
        low, high = self.logit_range
        if self.n_equal == self.n_seen:
            warn_user(
                f"The predictions equal y_true in all {self.n_seen:,} rows: a column of labels may "
                "have been taken for them. Pass what the model predicted."
            )
        elif 0.0 <= low < high <= 1.0:
            warn_user(
                f"All {self.n_seen:,} values of y_logit are in [0, 1]: they look like "
                "probabilities. If they are, pass them as y_pred."
            )


@dataclass(frozen=True)
class Place:
    """Where a block of rows lies among the rows of one call, and the notices of that call."""

    first_row: int
    notices: Notices
