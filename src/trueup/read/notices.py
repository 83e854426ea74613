"""What is valid in the input and should still be said, once for all rows of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.user_warning import warn_user

SATURATING_LOGIT = {np.dtype(np.float32): 16.6, np.dtype(np.float16): 7.6}
"""Logit from which a probability of that type is exactly 1."""


@dataclass
class Notices:
    """What is valid, but should be said once for all rows of a call."""

    n_saturated: int = 0
    saturated_dtype: np.dtype[Any] | None = None
    n_clipped: int = 0

    def add(self, other: Notices) -> None:
        """Count the rows of another part of the call."""
        self.n_saturated += other.n_saturated
        self.saturated_dtype = self.saturated_dtype or other.saturated_dtype
        self.n_clipped += other.n_clipped

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


@dataclass(frozen=True)
class Place:
    """Where a block of rows lies among the rows of one call, and the notices of that call."""

    first_row: int
    notices: Notices
