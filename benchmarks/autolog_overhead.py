"""What autologging costs a plain torch training: CPU time of an epoch, without and with it.

``python benchmarks/autolog_overhead.py`` writes ``autolog_overhead.md`` beside this file. Epochs
without and with autologging take turns, so that both see the same machine; a pair gives one
difference, after one epoch that is not counted. The epoch trains, validates and logs the validation
loss to a SQLite store.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

import mlflow
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trueup_mlflow import autolog

RESULT = Path(__file__).with_suffix(".md")
COLUMNS, HIDDEN, BATCH = 20, 64, 64


def data(n: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, COLUMNS)).astype("float32")
    y = (x[:, 0] + rng.logistic(size=n) > 0).astype("float32")
    return TensorDataset(torch.tensor(x), torch.tensor(y))


def batches(dataset: TensorDataset) -> list[tuple[torch.Tensor, ...]]:
    """Return the batches, loaded before: the time of a loader would hide the overhead."""
    return [tuple(batch) for batch in DataLoader(dataset, batch_size=BATCH)]


class Training:
    """A small network, and what one epoch of it takes."""

    def __init__(self, n_train: int, n_validation: int) -> None:
        torch.manual_seed(0)
        layers = (nn.Linear(COLUMNS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        self.model = nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.train, self.validation = batches(data(n_train, 0)), batches(data(n_validation, 1))
        self.criterion = nn.BCEWithLogitsLoss()
        self.n_validation = n_validation

    def epoch(self) -> tuple[float, float]:
        """Return the seconds of CPU of the loops and of the logging call."""
        start = time.process_time()
        self.model.train()
        for x, y in self.train:
            self.optimizer.zero_grad()
            self.criterion(self.model(x).squeeze(1), y).backward()
            self.optimizer.step()
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in self.validation:
                total += self.criterion(self.model(x).squeeze(1), y).item() * len(y)
        looped = time.process_time()
        mlflow.log_metric("val_loss", total / self.n_validation)
        return looped - start, time.process_time() - looped


def measure(training: Training, pairs: int) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for _ in range(pairs):
        for name in times:
            if name == "with":
                autolog()
            training.epoch()  # Python's caches of attributes are empty after a switch
            times[name].append(training.epoch())
        autolog(disable=True)
    return times


def held_memory(n_validation: int) -> float:
    """Return the MiB that are held after three epochs, beyond those without autologging."""
    held = []
    for is_on in (False, True):
        training = Training(BATCH, n_validation)
        if is_on:
            autolog()
        tracemalloc.start()
        for _ in range(3):
            training.epoch()
        held.append(tracemalloc.get_traced_memory()[0] / 2**20)
        tracemalloc.stop()
    autolog(disable=True)
    return held[1] - held[0]


def table(rows: list[tuple[int, int, dict[str, list[tuple[float, float]]]]]) -> str:
    lines = [
        "| training rows | validation rows | epoch, ms | added to the loops | added to logging |",
        "|---|---|---|---|---|",
    ]
    for n_train, n_validation, times in rows:
        base = statistics.median(sum(pair) for pair in times["without"])
        parts = [
            statistics.median(
                after[part] - before[part]
                for before, after in zip(times["without"], times["with"], strict=True)
            )
            for part in (0, 1)
        ]
        cells = [f"{part * 1e3:+.1f} ms ({part / base:+.1%})" for part in parts]
        lines.append(f"| {n_train} | {n_validation} | {base * 1e3:.0f} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        with mlflow.start_run():
            rows = [
                (n_train, n_validation, measure(Training(n_train, n_validation), pairs))
                for n_train, n_validation in ((20_000, 4_000), (50_000, 10_000))
            ]
            memory = held_memory(50_000)
    text = (
        "# What autologging costs a torch training\n\n"
        f"A network of {COLUMNS} columns and {HIDDEN} hidden units, batches of {BATCH}, Adam, one "
        f"thread; CPU time, medians over {pairs} pairs of epochs without and with autologging; "
        f"torch {torch.__version__}, {platform.machine()}. Written by "
        "`python benchmarks/autolog_overhead.py`.\n\n"
        f"{table(rows)}\n\n"
        "The logging call with autologging evaluates all validation rows and writes three metrics "
        f"more. After three epochs of 50,000 validation rows {memory:.0f} MiB of "
        "Python's memory more are held; tensors are kept up to 256 MiB.\n"
    )
    RESULT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
