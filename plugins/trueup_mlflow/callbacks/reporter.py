"""What the callbacks share: the loss of an objective, and an evaluation that ends no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from trueup import Evaluation
from trueup.errors import InvalidInputError
from trueup.read.rows import columns_are_known
from trueup_mlflow.log.log_evaluation import log_evaluation
from trueup_mlflow.write.failures import describe, told, warn
from trueup_mlflow.write.items import metric_key
from trueup_mlflow.write.writer import RunWriter


@dataclass
class Reporter:
    """Logs evaluations under one prefix; after a failure it stays silent.

    ``options`` are keywords of :func:`trueup.evaluate`, such as ``split``, ``row_id`` and
    ``fields``.
    """

    prefix: str = ""
    run_id: str | None = None
    client: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    _failed: bool = False

    def log(
        self,
        step: int,
        *,
        loss: Callable[[], str],
        predict: Callable[[str], Mapping[str, Any]],
    ) -> Evaluation | None:
        """Evaluate and log what ``predict`` returns for the loss: data keywords of ``evaluate``.

        None after a failure, which is a warning and the tag ``trueup.skipped.<K>``; the tag ends
        with ``loss`` where it is the loss that could not be told.
        """
        if self._failed:
            return None
        name = "loss"
        try:
            name = loss()
            with columns_are_known():
                return log_evaluation(
                    **predict(name),
                    loss=name,
                    prefix=self.prefix,
                    step=step,
                    run_id=self.run_id,
                    client=self.client,
                    **self.options,
                )
        except Exception as failure:  # it would end the training of the user
            self.fail(name, failure)
            return None

    def fail(self, loss: str, failure: Exception) -> None:
        """Tell of a failure, the first one only, and log nothing more."""
        if self._failed:
            return
        self._failed = True
        with suppress(Exception), told("calibrated metrics are not logged"):
            writer = RunWriter(run_id=self.run_id, client=self.client)
            writer.skip(metric_key(loss, self.prefix), describe(failure))

    def give_up(self, reason: str) -> None:
        """Warn without a tag, the first time only, and log nothing more."""
        if self._failed:
            return
        self._failed = True
        with suppress(Exception):
            warn(reason)


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
