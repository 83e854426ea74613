"""Estimates of a model's operational mean squared error before labels arrive.

Names are imported when they are first used, so that reading a result needs neither torch nor
scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup.monitoring.consensus import ConsensusEstimator as ConsensusEstimator
    from trueup.monitoring.one_step import OneStepCheckModel as OneStepCheckModel
    from trueup.monitoring.result import MSEEstimate as MSEEstimate

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
