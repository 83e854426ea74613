"""A loss: value per row, link, and the bias that Algorithm 1 fits."""

from __future__ import annotations

from trueup.losses.bias import solve_logit_shift, solve_softmax_shift
from trueup.losses.loss import (
    EPS,
    BrierScore,
    FloatArray,
    LogLoss,
    Loss,
    PoissonDeviance,
    SoftmaxLogLoss,
    SquaredError,
)
from trueup.losses.registry import LOSSES, for_columns, get_loss
from trueup.losses.softmax_brier_score import SoftmaxBrierScore
from trueup.losses.tweedie import GammaDeviance, TweedieDeviance

__all__ = [
    "EPS",
    "LOSSES",
    "BrierScore",
    "FloatArray",
    "GammaDeviance",
    "LogLoss",
    "Loss",
    "PoissonDeviance",
    "SoftmaxBrierScore",
    "SoftmaxLogLoss",
    "SquaredError",
    "TweedieDeviance",
    "for_columns",
    "get_loss",
    "solve_logit_shift",
    "solve_softmax_shift",
]
