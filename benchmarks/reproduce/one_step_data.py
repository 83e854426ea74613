"""The data of the one-step paper: three synthetic sets (4.1) and five benchmarks (4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FILES = {
    "mg": "mg_scale.csv.gz",
    "space-ga": "space_ga.csv.gz",
    "abalone": "abalone.csv.gz",
    "cpusmall": "cpusmall.csv.gz",
    "cadata": "cadata.csv.gz",
}
HALF = 500


@dataclass(frozen=True)
class Trials:
    """Stacks of trials, standardised by each trial's training rows.

    Attributes
    ----------
    x, x_op : arrays of shape (trials, n, d) and (trials, m, d)
    y, y_op : arrays of shape (trials, n) and (trials, m)
    """

    x: FloatArray
    y: FloatArray
    x_op: FloatArray
    y_op: FloatArray

    def __len__(self) -> int:
        return len(self.y)


def synthetic(
    kind: str,
    trials: int,
    seed: int,
    *,
    n: int = 100,
    m: int = 10_000,
    op: tuple[float, float] = (0.0, 1.0),
) -> Trials:
    """Draw Synthetic A, B or C (Eq. 19); ``op`` is mean and standard deviation of operational x."""
    rng = np.random.default_rng([seed, ord(kind)])
    x, y = _draw(kind, rng, (trials, n), (0.0, 1.0))
    x_op, y_op = _draw(kind, rng, (trials, m), op)
    center, scale = y.mean(1, keepdims=True), y.std(1, keepdims=True)
    return Trials(x[..., None], (y - center) / scale, x_op[..., None], (y_op - center) / scale)


def _draw(
    kind: str, rng: np.random.Generator, shape: tuple[int, int], x_law: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    x = rng.normal(*x_law, size=shape)
    z = 3.0 * x + 5.0
    normal = rng.normal(size=shape)
    noise = {"A": normal, "B": np.abs(normal), "C": 0.5 / rng.gamma(2.0, size=shape)}[kind]
    return x, z * np.sin(z) + 0.3 * (1.0 + np.maximum(0.0, z)) * noise


def benchmark(folder: Path, name: str, trials: int, seed: int, mode: str = "window") -> Trials:
    """Draw 500 training and 500 operational rows a trial.

    ``window``: consecutive rows, as the paper does. ``iid``: random rows. ``soft``: operational
    rows drawn in proportion to exp(4 rank of one feature). ``hard``: the upper half of one feature
    is operational.
    """
    table = pd.read_csv(folder / FILES[name]).to_numpy(dtype=float)
    rng = np.random.default_rng([seed, *name.encode()])
    parts = [_split(table, rng, mode, trial) for trial in range(trials)]
    return Trials(*(np.stack(part) for part in zip(*parts, strict=True)))


def _split(
    table: FloatArray, rng: np.random.Generator, mode: str, trial: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    if mode == "window":
        start = rng.integers(0, len(table) - 2 * HALF + 1)
        pool = np.arange(start, start + 2 * HALF)
        chosen = np.arange(2 * HALF) >= HALF
    else:
        pool = rng.choice(len(table), 2 * HALF, replace=False)
        chosen = _chosen(table[pool, 1 + trial % (table.shape[1] - 1)], rng, mode)
    train, op = table[rng.permutation(pool[~chosen])], table[pool[chosen]]
    center, scale = train.mean(0), train.std(0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    train, op = (train - center) / scale, (op - center) / scale
    return train[:, 1:], train[:, 0], op[:, 1:], op[:, 0]


def _chosen(feature: FloatArray, rng: np.random.Generator, mode: str) -> NDArray[np.bool_]:
    order = np.argsort(feature + 1e-9 * rng.random(len(feature)))
    rank = np.empty(len(feature))
    rank[order] = np.arange(len(feature)) / len(feature)
    if mode == "hard":
        return rank >= 0.5
    chance = np.exp(4.0 * rank) if mode == "soft" else np.ones(len(feature))
    chosen = np.zeros(len(feature), dtype=bool)
    chosen[rng.choice(len(feature), HALF, replace=False, p=chance / chance.sum())] = True
    return chosen
