"""A loss: value per row, link, and the bias that Algorithm 1 fits; those known by name."""

from __future__ import annotations

from trueup.errors import InvalidInputError
from trueup.losses.base import EPS, FloatArray, Loss
from trueup.losses.binary import BrierScore, LogLoss, solve_logit_shift
from trueup.losses.regression import GammaDeviance, PoissonDeviance, SquaredError, TweedieDeviance
from trueup.losses.softmax import SoftmaxBrierScore, SoftmaxLogLoss, solve_softmax_shift

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

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        LogLoss(),
        SquaredError(),
        BrierScore(),
        PoissonDeviance(),
        GammaDeviance(),
        TweedieDeviance(),
    )
}
"""By name; those of probabilities have a form for k > 2 columns, see :func:`for_columns`."""


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss itself.

    Raises
    ------
    InvalidInputError
        If no loss has the name.

    Examples
    --------
    >>> from trueup.losses import get_loss
    >>> get_loss("log_loss").task
    'binary'
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise InvalidInputError(
            f"loss must be one of {sorted(LOSSES)} or a Loss", repr(loss), "Check the spelling."
        )
    return LOSSES[loss]


def for_columns(loss: Loss, n_columns: int) -> Loss:
    """Return the loss of that many columns of predictions: its softmax form from 3 on.

    Examples
    --------
    >>> from trueup.losses import for_columns, get_loss
    >>> for_columns(get_loss("brier_score"), 3).task
    'multiclass'
    """
    if n_columns < 3:
        return loss
    if isinstance(loss, BrierScore):
        return SoftmaxBrierScore()
    return SoftmaxLogLoss() if loss.name == "log_loss" else loss
