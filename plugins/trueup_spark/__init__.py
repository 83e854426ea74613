"""Calibrated metrics of a Spark data frame, in one pass over its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup_spark.frames import evaluate as evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    if name != "evaluate":
        raise AttributeError(f"module 'trueup_spark' has no attribute {name!r}")
    from trueup_spark.frames import evaluate

    return evaluate
