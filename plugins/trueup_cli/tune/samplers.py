"""The samplers and the pruners of epochs that ``trueup tune`` knows by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optuna

from trueup.errors import InvalidInputError
from trueup_cli.tune.space import distributions_of, load_space
from trueup_optuna.tuning_samplers import grid_of

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


def epoch_pruner_of(name: str | None) -> optuna.pruners.BasePruner | None:
    """Return the pruner of that name."""
    return None if name is None else EPOCH_PRUNERS[name]()


class _Grid(optuna.samplers.GridSampler):
    """A grid that leaves it to the number of trials when to stop: any process may run the last."""

    def after_trial(self, *_: Any) -> None:
        return None


def grid_points(space: str | None, trials: int) -> dict[str, list[Any]]:
    """Return the values of each parameter in a grid of at most so many points, if they allow it.

    Raises
    ------
    InvalidInputError
        If there is no space file, whose parameters could be listed.
    """
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


def grid_sampler(space: str | None, trials: int, seed: int | None) -> optuna.samplers.BaseSampler:
    """Return a sampler of the grid of a space file."""
    return _Grid(grid_points(space, trials), seed=seed)
