"""Calibrated metrics of a Spark data frame, in one pass over its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup_spark.frames import evaluate as evaluate

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
