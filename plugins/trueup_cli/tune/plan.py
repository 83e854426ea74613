"""What ``trueup tune`` was asked to do, as its workers are told, and the samplers that it names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import optuna

from trueup.decide.race import Variance
from trueup.errors import InvalidInputError
from trueup_cli.tune.space import distributions_of, load_space
from trueup_optuna.study.trial_state import Metric
from trueup_optuna.tuning_samplers import grid_of

Stage = Literal["search", "finals"]
STAGES: tuple[Stage, ...] = ("search", "finals")

SAMPLERS: dict[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "tpe": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
    "gp": optuna.samplers.GPSampler,
    "cmaes": optuna.samplers.CmaEsSampler,
    "nsga2": optuna.samplers.NSGAIISampler,
}
EPOCH_PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "median": optuna.pruners.MedianPruner,
    "hyperband": optuna.pruners.HyperbandPruner,
    "successive-halving": optuna.pruners.SuccessiveHalvingPruner,
}


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
    goes_by: Metric | None = None
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
        return self.grace / 4.0


class Grid(optuna.samplers.GridSampler):
    """A grid that leaves it to the number of trials when to stop: any process may run the last."""

    def after_trial(self, *_: Any) -> None:
        return None


def grid_points(space: str | None, trials: int) -> dict[str, list[Any]]:
    """Return the values of each parameter in a grid of at most so many points, if they allow it."""
    if space is None:
        raise InvalidInputError(
            "--sampler must have a --space where it is grid",
            "none",
            "Write the parameters into a YAML file.",
        )
    return grid_of(distributions_of(load_space(space)), trials)


def grid_size(space: str | None, trials: int) -> int:
    """Return the number of configurations of the grid."""
    return math.prod(len(values) for values in grid_points(space, trials).values())
