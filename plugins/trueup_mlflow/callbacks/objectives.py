"""Which loss goes with the objective of a booster, where that is clear."""

from __future__ import annotations

from collections.abc import Mapping

from trueup.errors import InvalidInputError

_RANKING = ("rank", "ndcg")
LOSSES_OF_LOGITS = ("log_loss", "brier_score")
"""Losses for which the raw scores of a booster are read as logits."""


def loss_of_objective(objective: str, losses: Mapping[str, str]) -> str:
    """Return the loss that an objective stands for; refuse one that is none of trueup's."""
    if objective not in losses:
        raise InvalidInputError(
            f"loss must be given where the objective is {objective!r}",
            "None",
            "If a loss of trueup fits these predictions, pass loss=... to TrueupCallback.",
        )
    return losses[objective]


def require_logits(objective: str, loss: str, not_logits: tuple[str, ...]) -> None:
    """Refuse a loss of probabilities for raw scores that are not on the scale of logits.

    So are the scores of any ranking objective: they are compared with one another only.
    """
    if any(word in objective for word in _RANKING):
        raise InvalidInputError(
            "the objective must predict labels",
            f"{objective!r}, which ranks",
            "Read a ranking metric: one bias term does not change it.",
        )
    if loss in LOSSES_OF_LOGITS and objective in not_logits:
        raise InvalidInputError(
            f"loss must fit the objective {objective!r}, whose scores are no logits",
            repr(loss),
            "Train with a logistic or a softmax objective.",
        )
