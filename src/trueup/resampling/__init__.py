"""The generalization error of an inducer, estimated by resampling.

An *inducer* is everything that turns a training set into a model: a scikit-learn estimator or a
training function. What is estimated is the mean error over training sets of one size, not the
risk of one model at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup.resampling.aggregation import corrected_t_interval as corrected_t_interval
    from trueup.resampling.estimate import GEEstimate as GEEstimate
    from trueup.resampling.generalization import generalization_error as generalization_error
    from trueup.resampling.nested import nested_resampling as nested_resampling
    from trueup.resampling.strategies import Bootstrap as Bootstrap

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
