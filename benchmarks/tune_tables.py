"""Tables of real trainings for ``tune_budget.py``: every point of a grid under every seed.

``python benchmarks/tune_tables.py TASK --data FOLDER`` trains the grid of a task once per seed and
keeps, per training, the vanilla and the calibrated loss on validation and on test rows, for two
draws of the validation rows, in ``build/tune_tables/TASK.npz`` (it resumes after the last whole
seed). FOLDER holds the public data sets named in ``TASKS``. A rule for tuning can then be replayed
hundreds of times on trainings that really took place, with fresh seeds and large test rows for the
truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from trueup import CrossFit, evaluate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
ROOT = Path(__file__).parents[1]
TABLES = ROOT / "build" / "tune_tables"
VALIDATION_ROWS, TEST_ROWS = 8_000, 20_000
DRAWS = 2
"""Ways to draw the validation rows among those held out; the first takes them as they come."""
COLUMNS = ("validation", "calibrated_validation", "test", "calibrated_test")


@dataclass(frozen=True)
class Rows:
    """Features and labels, training rows first, then validation, then test."""

    x: FloatArray
    y: FloatArray
    n_train: int

    @property
    def train(self) -> slice:
        """The rows that a training may see."""
        return slice(0, self.n_train)

    @property
    def held_out(self) -> slice:
        """Validation rows, then test rows."""
        return slice(self.n_train, self.n_train + VALIDATION_ROWS + TEST_ROWS)


@dataclass(frozen=True)
class Task:
    """A data set, a learner, and the values of each of its hyper-parameters."""

    load: Callable[[Path], Rows]
    fit: Callable[..., FloatArray]
    grid: dict[str, tuple[Any, ...]]
    loss: str = "log_loss"

    @property
    def points(self) -> list[dict[str, Any]]:
        """All configurations, the last parameter fastest."""
        return [dict(zip(self.grid, p, strict=True)) for p in product(*self.grid.values())]


def _rows(x: Any, y: Any, n_train: int) -> Rows:
    order = np.random.default_rng(0).permutation(len(y))
    order = order[: n_train + VALIDATION_ROWS + TEST_ROWS]
    return Rows(np.asarray(x, np.float64)[order], np.asarray(y, np.float64)[order], n_train)


def _coded(table: pd.DataFrame, drop: tuple[str, ...], n_train: int, label: str = "y") -> Rows:
    features = table.drop(columns=[*drop, label])
    coded = features.apply(lambda c: c if c.dtype.kind in "if" else pd.factorize(c, sort=True)[0])
    return _rows(coded, table[label], n_train)


def load_adult(folder: Path) -> Rows:
    path = folder / "uci_adult" / "adult_48842.parquet"
    return _coded(pd.read_parquet(path), ("split",), 2_000)


def load_bank(folder: Path) -> Rows:
    path = folder / "uci_bank_marketing" / "bank_additional_full_41188.parquet"
    return _coded(pd.read_parquet(path), ("duration", "year"), 2_000)


def load_credit(folder: Path) -> Rows:
    path = folder / "uci_credit_default" / "credit_default_30000.parquet"
    rows = _coded(pd.read_parquet(path), ("ID",), 2_000)
    return Rows(_standard(np.sign(rows.x) * np.log1p(np.abs(rows.x)), rows.n_train), rows.y, 2_000)


def load_housing(folder: Path) -> Rows:
    table = pd.read_csv(folder / "libsvm_regression" / "cadata.csv.gz")
    rows = _rows(table.iloc[:, 1:], np.log(table["medianHouseValue"]), 2_000)
    return Rows(_standard(rows.x, 2_000), rows.y - rows.y[:2_000].mean(), 2_000)


def load_flights(_folder: Path) -> Rows:
    table = pd.read_parquet(ROOT / "examples" / "data" / "flights_2013.parquet")
    fields = ["carrier", "origin", "dest", "hour", "month", "flight", "tailnum"]
    codes = np.stack([pd.factorize(table[name])[0] for name in fields], axis=1)
    return _rows(codes, table["late"], 6_000)


def _standard(x: FloatArray, n_train: int) -> FloatArray:
    return (x - x[:n_train].mean(0)) / np.maximum(x[:n_train].std(0), 1e-9)


def fit_lightgbm(rows: Rows, params: dict[str, Any], seed: int) -> FloatArray:
    import lightgbm

    fixed = {"objective": "binary", "bagging_freq": 1, "verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(rows.x[rows.train], rows.y[rows.train], free_raw_data=False)
    model = lightgbm.train({**fixed, **params, "seed": seed}, data, num_boost_round=40)
    return np.asarray(model.predict(rows.x[rows.held_out]))


def fit_xgboost(rows: Rows, params: dict[str, Any], seed: int) -> FloatArray:
    import xgboost

    fixed = {"objective": "binary:logistic", "nthread": 1, "seed": seed}
    data = xgboost.DMatrix(rows.x[rows.train], rows.y[rows.train], nthread=1)
    model = xgboost.train({**fixed, **params}, data, num_boost_round=30)
    return np.asarray(model.predict(xgboost.DMatrix(rows.x[rows.held_out], nthread=1)), np.float64)


def fit_network(rows: Rows, params: dict[str, Any], seed: int, *, kind: str) -> FloatArray:
    """Train a perceptron on embedded fields or on standardised numbers; return predictions."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    x = torch.from_numpy(rows.x).to(torch.float32)
    y = torch.from_numpy(rows.y).to(torch.float32)
    width, n_inputs, first = params["width"], x.shape[1], list[nn.Module]()
    if kind == "embedding":
        levels = x.max(0).values.long() + 1
        x = x.long() + torch.cumsum(levels, 0) - levels
        first = [nn.Embedding(int(levels.sum()), params["embedding"]), nn.Flatten(1)]
        nn.init.normal_(first[0].weight, std=0.05)
        n_inputs *= params["embedding"]
    dropout = nn.Dropout(params.get("dropout", 0.0))
    model = nn.Sequential(
        *first, nn.Linear(n_inputs, width), nn.ReLU(), dropout, nn.Linear(width, 1), nn.Flatten(0)
    )
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=params["learning_rate"],
        weight_decay=params["weight_decay"],
        fused=True,
    )
    regression = kind == "regression"
    loss = nn.MSELoss() if regression else nn.BCEWithLogitsLoss()
    for _ in range(params.get("epochs", 1)):
        for batch in torch.randperm(rows.n_train).split(params.get("batch", 128)):
            optimizer.zero_grad(set_to_none=True)
            loss(model(x[batch]), y[batch]).backward()
            optimizer.step()
    model.eval()
    with torch.inference_mode():
        found = model(x[rows.held_out])
    return (found if regression else torch.sigmoid(found)).double().numpy()


TASKS = {
    "lightgbm-adult": Task(
        load_adult,
        fit_lightgbm,
        {
            "learning_rate": (0.02, 0.04, 0.07, 0.12, 0.2, 0.35),
            "num_leaves": (3, 6, 12, 24),
            "min_data_in_leaf": (5, 20, 60),
            "bagging_fraction": (0.3, 0.5, 0.7, 0.9),
            "feature_fraction": (0.5, 1.0),
        },
    ),
    "xgboost-bank": Task(
        load_bank,
        fit_xgboost,
        {
            "eta": (0.03, 0.06, 0.1, 0.17, 0.3),
            "max_depth": (2, 3, 5, 7),
            "min_child_weight": (1, 5, 20),
            "subsample": (0.4, 0.7, 1.0),
            "colsample_bytree": (0.4, 1.0),
        },
    ),
    "embedding-flights": Task(
        load_flights,
        partial(fit_network, kind="embedding"),
        {
            "learning_rate": (0.001, 0.002, 0.004, 0.007, 0.012, 0.02),
            "width": (8, 24, 64),
            "embedding": (2, 4, 8, 16),
            "weight_decay": (0.0, 0.01, 0.1, 1.0),
            "batch": (128, 384),
        },
    ),
    "mlp-credit": Task(
        load_credit,
        partial(fit_network, kind="classification"),
        {
            "learning_rate": (0.0007, 0.0015, 0.003, 0.006, 0.012, 0.025),
            "width": (8, 24, 64),
            "dropout": (0.0, 0.2, 0.4),
            "weight_decay": (0.0, 0.3),
            "epochs": (2, 4, 8),
        },
    ),
    "mlp-housing": Task(
        load_housing,
        partial(fit_network, kind="regression"),
        {
            "learning_rate": (0.001, 0.002, 0.004, 0.008, 0.016, 0.03),
            "width": (16, 48, 128),
            "dropout": (0.0, 0.1, 0.25),
            "weight_decay": (0.0, 0.03, 0.3),
            "epochs": (3, 6, 12),
        },
        loss="mean_squared_error",
    ),
}


def drawn_rows(n: int) -> list[tuple[IntArray, IntArray]]:
    """Return validation and test rows of each draw, as places among the ``n`` held-out rows."""
    orders = [np.random.default_rng(draw).permutation(n) for draw in range(1, DRAWS)]
    return [(o[:VALIDATION_ROWS], o[VALIDATION_ROWS:]) for o in (np.arange(n), *orders)]


def train(task: Task, rows: Rows, params: dict[str, Any], seed: int) -> FloatArray:
    """Return the losses of one training, shape (draws, columns)."""
    predictions, y = task.fit(rows, params, seed), rows.y[rows.held_out]
    found = [
        evaluate(y[part], predictions[part], loss=task.loss, split=CrossFit())
        for parts in drawn_rows(len(y))
        for part in parts
    ]
    return np.array([(one.vanilla, one.calibrated) for one in found]).reshape(DRAWS, len(COLUMNS))


def make_table(name: str, folder: Path, n_seeds: int) -> None:
    """Train what is missing, seed by seed."""
    task, path = TASKS[name], TABLES / f"{name}.npz"
    rows, points = task.load(folder), task.points
    path.parent.mkdir(parents=True, exist_ok=True)
    done = list(np.load(path)["values"]) if path.exists() else []
    for seed in tqdm(range(len(done), n_seeds), desc=name, disable=None):
        done.append(np.array([train(task, rows, params, seed) for params in points]))
        np.savez_compressed(path, values=np.stack(done), columns=np.array(COLUMNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path, required=True, help="Folder of the data sets.")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    make_table(arguments.task, arguments.data, arguments.seeds)


if __name__ == "__main__":
    main()
