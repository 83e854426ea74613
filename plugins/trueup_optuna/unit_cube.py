"""Configurations as points, so that neighbours can be told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

FloatArray = NDArray[np.float64]


def unit_cube(trials: tuple[FrozenTrial, ...]) -> FloatArray:
    """Return the parameters of trials as points, shape (k, d): numbers from 0 to 1.

    Logarithmic parameters by their logarithm, a choice as a column of each value, a parameter that
    a trial doesn't have as the middle.
    """
    spaces: dict[str, BaseDistribution] = {}
    for trial in trials:
        spaces.update(trial.distributions)
    columns = [_columns(name, spaces[name], trials) for name in sorted(spaces)]
    return np.concatenate([np.zeros((len(trials), 0)), *columns], axis=1)


def _columns(name: str, space: BaseDistribution, trials: tuple[FrozenTrial, ...]) -> FloatArray:
    values = [trial.params.get(name) for trial in trials]
    if isinstance(space, CategoricalDistribution):
        chosen = [[value == choice for choice in space.choices] for value in values]
        return np.asarray(np.array(chosen, dtype=np.float64) / np.sqrt(2.0))
    low, high = float(getattr(space, "low", 0.0)), float(getattr(space, "high", 1.0))
    read = np.log if getattr(space, "log", False) else np.asarray
    known = np.array([np.nan if value is None else float(value) for value in values])
    width = float(read(high) - read(low))
    scaled = (read(known) - read(low)) / width if width > 0.0 else np.zeros_like(known)
    return np.where(np.isnan(scaled), 0.5, scaled)[:, None]
