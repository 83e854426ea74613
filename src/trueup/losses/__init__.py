"""A loss: value per row, link, and the bias that Algorithm 1 fits."""

from __future__ import annotations

from trueup.losses.bias import solve_logit_shift, solve_softmax_shift
from trueup.losses.loss import (
    EPS,
    LOSSES,
    BrierScore,
    FloatArray,
    LogLoss,
    Loss,
    PoissonDeviance,
    SoftmaxLogLoss,
    SquaredError,
    get_loss,
)

__all__ = [
    "EPS",
    "LOSSES",
    "BrierScore",
    "FloatArray",
    "LogLoss",
    "Loss",
    "PoissonDeviance",
    "SoftmaxLogLoss",
    "SquaredError",
    "get_loss",
    "solve_logit_shift",
    "solve_softmax_shift",
]
