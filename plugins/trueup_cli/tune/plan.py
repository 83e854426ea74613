"""What ``trueup tune`` was asked to do, as its workers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trueup.decide.race import Variance


@dataclass(frozen=True)
class TunePlan:
    """Everything that a worker needs to know; it travels to the workers as JSON."""

    target: str
    space: str | None
    storage: str
    study_name: str
    trials: int = 60
    seeds: int = 20
    confirm: int = 5
    n_base: int = 2
    loss: str = "log_loss"
    direction: Literal["minimize", "maximize"] = "minimize"
    sampler: str = "tpe"
    sampler_seed: int | None = None
    variance: Variance = "moderated"
    alpha: float = 0.05
    epsilon: float = 0.0
    finals: int | None = None
    budget: int | None = None
    epoch_pruner: str | None = None
    catch: tuple[str, ...] = ()
    on_error: Literal["drop", "keep"] = "drop"
    grace: float = 120.0

    @property
    def heartbeat(self) -> float:
        """Seconds between two signs of life."""
        return self.grace / 4.0
