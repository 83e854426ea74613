"""What the paper's rolling tables compare, what they print, and our results by the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rolling_model import Pipeline


class Pair(NamedTuple):
    """Two pipelines that the paper compares, and its accuracies in per cent."""

    first: str
    second: str
    vanilla: int
    calibrated: int


@dataclass(frozen=True)
class Table:
    """One table of the paper; the settings of its pipelines are scaled to our data."""

    title: str
    pairs: tuple[Pair, ...]
    pipelines: dict[str, Pipeline]


@dataclass(frozen=True)
class Arm:
    """How models are trained: months between trainings, and what the learning rate does."""

    retrain_every: int
    decay: bool


class Key(NamedTuple):
    """One pipeline on one data set in one arm."""

    data: str
    arm: str
    pipeline: str


@dataclass(frozen=True)
class Results:
    """Metrics by seed of each pipeline."""

    by_key: dict[Key, dict[str, NDArray[np.float64]]]

    def of(self, data: str, arm: str, pipeline: str) -> dict[str, NDArray[np.float64]]:
        return self.by_key[Key(data, arm, pipeline)]

    def groups(self) -> list[tuple[str, str]]:
        """Return each data set and arm, in order."""
        return list(dict.fromkeys((key.data, key.arm) for key in self.by_key))

    @property
    def n_seeds(self) -> int:
        return len(next(iter(self.by_key.values()))["vanilla"])


ARMS = {
    "6 months, constant": Arm(6, decay=False),
    "1 month, constant": Arm(1, decay=False),
    "6 months, decaying": Arm(6, decay=True),
    "1 month, decaying": Arm(1, decay=True),
}

TABLES = {
    "7": Table(
        "Table 7: weight of the penalty (a thousand times the paper's)",
        tuple(
            Pair("penalty 0", f"penalty {weight}e-3", *published)
            for weight, published in zip(
                range(3, 8), [(58, 76), (76, 86), (77, 91), (87, 94), (92, 96)], strict=True
            )
        ),
        {f"penalty {k}e-3" if k else "penalty 0": Pipeline(penalty=k * 1e-3)
         for k in (0, 3, 4, 5, 6, 7)},
    ),
    "20": Table(
        "Table 20: hidden size (a quarter of the paper's)",
        (
            Pair("hidden 8", "hidden 16", 69, 76),
            Pair("hidden 16", "hidden 24", 74, 78),
            Pair("hidden 16", "hidden 28", 88, 90),
            Pair("hidden 16", "hidden 32", 91, 94),
            Pair("hidden 16", "hidden 36", 97, 99),
        ),
        {f"hidden {k}": Pipeline(hidden=k) for k in (8, 16, 24, 28, 32, 36)},
    ),
    "21": Table(
        "Table 21: layers",
        (
            Pair("layers 3", "layers 2", 93, 99),
            Pair("layers 4", "layers 2", 94, 100),
            Pair("layers 4", "layers 3", 74, 88),
            Pair("layers 5", "layers 3", 80, 98),
            Pair("layers 6", "layers 3", 78, 100),
            Pair("layers 6", "layers 4", 64, 76),
        ),
        {f"layers {k}": Pipeline(layers=k) for k in (2, 3, 4, 5, 6)},
    ),
    "22": Table(
        "Table 22: batch size (128 for each 1,000 of the paper's)",
        (
            Pair("batch 384", "batch 256", 75, 85),
            Pair("batch 384", "batch 128", 89, 97),
            Pair("batch 256", "batch 128", 60, 77),
        ),
        {f"batch {k}": Pipeline(batch_size=k) for k in (128, 256, 384)},
    ),
    "23": Table(
        "Table 23: epochs",
        (
            Pair("epochs 4", "epochs 5", 70, 75),
            Pair("epochs 4", "epochs 6", 94, 96),
            Pair("epochs 4", "epochs 7", 97, 99),
            Pair("epochs 5", "epochs 6", 98, 98),
            Pair("epochs 5", "epochs 7", 99, 100),
            Pair("epochs 6", "epochs 7", 72, 82),
        ),
        {f"epochs {k}": Pipeline(epochs=k) for k in (4, 5, 6, 7)},
    ),
}  # fmt: skip


def named_pipelines(tables: list[str]) -> dict[str, Pipeline]:
    """Return the pipelines of these tables by name; those of equal settings are trained once."""
    return {name: p for table in tables for name, p in TABLES[table].pipelines.items()}
