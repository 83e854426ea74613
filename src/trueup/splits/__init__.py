"""Which rows the bias is fitted on, and which are scored with it."""

from __future__ import annotations

from trueup._kernels.hashing import salted_hash
from trueup.splits.assignment import (
    CrossFit,
    GroupArray,
    HoldOut,
    InSample,
    Part,
    Rolling,
    Split,
    kernel_rule,
    parse_split,
)

__all__ = [
    "CrossFit",
    "GroupArray",
    "HoldOut",
    "InSample",
    "Part",
    "Rolling",
    "Split",
    "kernel_rule",
    "parse_split",
    "salted_hash",
]
