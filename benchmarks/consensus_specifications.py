"""The 23 specifications of the consensus suite, and the model that is monitored in them."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reproduce"))

from one_step_data import FloatArray, Trials, benchmark, synthetic

from trueup.monitoring.baselines.two_step import fit_mean
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, as_tensor, seeded

SPECIFICATIONS = (
    *(f"{name}:iid" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:soft" for name in ("mg", "space-ga", "abalone", "cpusmall", "cadata")),
    *(f"{name}:window" for name in ("mg", "space-ga", "abalone", "cpusmall")),
    *(f"{name}:hard" for name in ("mg", "space-ga", "abalone")),
    *(f"{kind}:{shift}" for kind in "ABC" for shift in ("none", "shifted")),
)


class Network:
    """A regression network with ``fit`` and ``predict``: the monitored model."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        self.network = _fitted(X.tobytes(), y.tobytes(), X.shape, self.random_state)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        return self.network.predict(X)[0]


@lru_cache(maxsize=8)
def _fitted(x: bytes, y: bytes, shape: tuple[int, int], random_state: int) -> StackedMLP:
    """Return the network of these rows; the folds of the consensus are those of the field too."""
    rows, label = np.frombuffer(x).reshape(1, *shape).copy(), np.frombuffer(y)[None].copy()
    generator = seeded(random_state)
    return fit_mean(as_tensor(rows), as_tensor(label), 64, TrainingPlan(), generator)


def draw(specification: str, folder: Path, trials: int, seed: int) -> Trials:
    """Return the trials of a specification."""
    name, shift = specification.split(":")
    if name in "ABC":
        law = (0.0, 1.0) if shift == "none" else (1.0, 0.5)
        return synthetic(name, trials, seed, m=5_000, op=law)
    return benchmark(folder, name, trials, seed, shift)
