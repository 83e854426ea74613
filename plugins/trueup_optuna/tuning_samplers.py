"""Samplers of a self-tuning learner by name, and how a trial asks its search space."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    GridSampler,
    NSGAIISampler,
    RandomSampler,
    TPESampler,
)

from trueup.errors import InvalidInputError

SearchSpace = Mapping[str, BaseDistribution] | Callable[[optuna.Trial], Mapping[str, Any]]

_GENERATIONS = 5  # a smaller population than NSGA-II's 50, so that small budgets evolve at all


def check_space(space: SearchSpace) -> None:
    """Refuse a space that is neither a non-empty mapping of distributions nor callable."""
    if callable(space):
        return
    fine = isinstance(space, Mapping) and space
    if not fine or not all(isinstance(d, BaseDistribution) for d in space.values()):
        raise InvalidInputError(
            "search_space must be a mapping of names to distributions, or a function of a trial",
            repr(space),
            "Use optuna.distributions.",
        )


def suggest(trial: optuna.Trial, space: SearchSpace) -> dict[str, Any]:
    """Return the parameters of a trial."""
    if callable(space):
        return dict(space(trial))
    return {name: _suggest(trial, name, distribution) for name, distribution in space.items()}


def _suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    numbers = {key: getattr(distribution, key) for key in ("low", "high", "step", "log")}
    ask = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
    return ask(name, **numbers)


def make_sampler(
    sampler: str | BaseSampler, space: SearchSpace, n_trials: int, seed: int
) -> BaseSampler:
    """Return a fresh sampler of that name, or a copy of the sampler itself.

    A grid needs a mapping: the parameters of a function are not known.
    """
    if isinstance(sampler, BaseSampler):
        return copy.deepcopy(sampler)
    makers: dict[str, Callable[[], BaseSampler]] = {
        "random": lambda: RandomSampler(seed=seed),
        "grid": lambda: GridSampler(grid_of(space, n_trials), seed=seed),
        "tpe": lambda: TPESampler(seed=seed),
        "gp": lambda: GPSampler(seed=seed, warn_independent_sampling=False),
        "cmaes": lambda: CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "nsga2": lambda: NSGAIISampler(
            seed=seed, population_size=min(50, max(2, n_trials // _GENERATIONS))
        ),
        "hyperband": lambda: TPESampler(seed=seed),
    }
    if not isinstance(sampler, str) or sampler not in makers:
        raise InvalidInputError(
            f"sampler must be one of {sorted(makers)} or a sampler of Optuna",
            repr(sampler),
            "Check the spelling.",
        )
    return makers[sampler]()


def grid_of(space: SearchSpace, n_trials: int) -> dict[str, list[Any]]:
    """Return the values of each parameter, with as many continuous points as the budget allows."""
    if callable(space):
        raise InvalidInputError(
            "search_space must be a mapping with a grid",
            "a function",
            "Pass optuna.distributions by name.",
        )
    listed = {name: _listed(distribution) for name, distribution in space.items()}
    n_listed = int(np.prod([len(values) for values in listed.values() if values is not None]))
    n_open = sum(values is None for values in listed.values())
    points = max(2, int((n_trials / n_listed) ** (1 / n_open) + 1e-9)) if n_open else 0
    return {
        name: _spaced(space[name], points) if values is None else values
        for name, values in listed.items()
    }


def _listed(distribution: BaseDistribution) -> list[Any] | None:
    """Return the values of a discrete parameter; None for a continuous or logarithmic one."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    if isinstance(distribution, IntDistribution) and not distribution.log:
        return list(range(distribution.low, distribution.high + 1, distribution.step))
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        n_steps = round((distribution.high - distribution.low) / distribution.step)
        return [float(v) for v in np.linspace(distribution.low, distribution.high, n_steps + 1)]
    return None


def _spaced(distribution: Any, points: int) -> list[Any]:
    space = np.geomspace if distribution.log else np.linspace
    values = space(distribution.low, distribution.high, points)
    if isinstance(distribution, IntDistribution):
        return sorted({int(value) for value in np.round(values)})
    return [float(v) for v in np.clip(values, distribution.low, distribution.high)]


def make_pruner(sampler: Any, n_splits: int) -> optuna.pruners.BasePruner:
    """Return the pruner that goes with a sampler: Hyperband spends inner test sets."""
    if sampler != "hyperband":
        return optuna.pruners.NopPruner()
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=n_splits)
