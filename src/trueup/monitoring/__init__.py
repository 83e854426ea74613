"""Estimates of a model's operational mean squared error before labels arrive.

Names are imported when they are first used, so that reading a result needs neither torch nor
scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.monitoring.consensus import ConsensusEstimator as ConsensusEstimator
    from trueup.monitoring.one_step import OneStepCheckModel as OneStepCheckModel
    from trueup.monitoring.result import MSEEstimate as MSEEstimate

_HOME = {
    "ConsensusEstimator": "trueup.monitoring.consensus",
    "MSEEstimate": "trueup.monitoring.result",
    "OneStepCheckModel": "trueup.monitoring.one_step",
}

__all__ = ["ConsensusEstimator", "MSEEstimate", "OneStepCheckModel"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup.monitoring' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
