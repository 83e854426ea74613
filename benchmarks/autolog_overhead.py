"""What autologging costs a plain torch training: CPU time of an epoch, without and with it.

``python benchmarks/autolog_overhead.py`` writes ``autolog_overhead.md`` beside this file. Epochs
without and with autologging take turns, so that both see the same machine; a pair gives one
difference, after one epoch that is not counted. The epoch trains, validates and logs the validation
loss to a SQLite store; that of the third network logs the loss of each training step too.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import mlflow
import numpy as np
import torch
from mlflow.entities import Metric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trueup_mlflow import autolog

RESULT = Path(__file__).with_suffix(".md")
COLUMNS = 20


@dataclass(frozen=True)
class Case:
    """A network, its rows, and whether the loss of each training step is logged."""

    n_train: int
    n_validation: int
    hidden: int = 64
    batch: int = 64
    logs_steps: bool = False

    @property
    def is_large(self) -> bool:
        return self.hidden > 1_000


CASES = (
    Case(20_000, 4_000),
    Case(50_000, 10_000),
    Case(12_800, 2_560, hidden=1150, batch=128),  # some 100 steps a second
    Case(12_800, 2_560, hidden=1150, batch=128, logs_steps=True),
)


def data(n: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, COLUMNS)).astype("float32")
    y = (x[:, 0] + rng.logistic(size=n) > 0).astype("float32")
    return TensorDataset(torch.tensor(x), torch.tensor(y))


class Training:
    """A small network, and what one epoch of it takes."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(0)
        layers = [nn.Linear(COLUMNS, case.hidden), nn.ReLU()]
        if case.is_large:
            layers += [nn.Linear(case.hidden, case.hidden // 2), nn.ReLU()]
        self.model = nn.Sequential(*layers, nn.LazyLinear(1))
        self.case = case
        self.train = self.batches(data(case.n_train, 0))
        self.validation = self.batches(data(case.n_validation, 1))
        self.model(self.train[0][0])
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.criterion = nn.BCEWithLogitsLoss()
        self.step = 0

    def batches(self, dataset: TensorDataset) -> list[tuple[torch.Tensor, ...]]:
        """Return the batches, loaded before: the time of a loader would hide the overhead."""
        return [tuple(batch) for batch in DataLoader(dataset, batch_size=self.case.batch)]

    def epoch(self) -> tuple[float, float]:
        """Return the seconds of CPU of the epoch, and of its logging calls alone."""
        start, logging = time.process_time(), 0.0
        self.model.train()
        for x, y in self.train:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x).squeeze(1), y)
            loss.backward()
            self.optimizer.step()
            if self.case.logs_steps:
                logging += self.log("train_loss", loss.item())
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in self.validation:
                total += self.criterion(self.model(x).squeeze(1), y).item() * len(y)
        logging += self.log("val_loss", total / self.case.n_validation)
        return time.process_time() - start, logging

    def log(self, key: str, value: float) -> float:
        """Log a loss and return the seconds of CPU that this took."""
        before, self.step = time.process_time(), self.step + 1
        mlflow.log_metric(key, value, step=self.step)
        return time.process_time() - before


def measure(training: Training, pairs: int) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for pair in range(pairs):
        for name in sorted(times, reverse=pair % 2 == 0):  # each comes first as often
            autolog(disable=name == "without")
            training.epoch()  # Python's caches of attributes are empty after a switch
            times[name].append(training.epoch())
    autolog(disable=True)
    return times


def held_memory(n_validation: int) -> float:
    """Return the MiB that are held after three epochs, beyond those without autologging."""
    held = []
    for is_on in (False, True):
        training = Training(Case(64, n_validation))
        if is_on:
            autolog()
        tracemalloc.start()
        for _ in range(3):
            training.epoch()
        held.append(tracemalloc.get_traced_memory()[0] / 2**20)
        tracemalloc.stop()
    autolog(disable=True)
    return held[1] - held[0]


def beyond_one_metric(repeats: int = 200) -> float:
    """Return the seconds of CPU that MLflow takes for four metrics in place of one."""
    client, run = mlflow.MlflowClient(), mlflow.active_run().info.run_id
    times: dict[int, list[float]] = {1: [], 4: []}
    for step in range(repeats):
        four = [Metric(f"own_{k}", float(step), 0, step) for k in range(4)]
        for n, call in (
            (1, lambda step=step: client.log_metric(run, "own", float(step), step=step)),
            (4, lambda four=four: client.log_batch(run, four)),
        ):
            before = time.process_time()
            call()
            times[n].append(time.process_time() - before)
    return statistics.median(times[4]) - statistics.median(times[1])


def table(rows: list[tuple[Case, dict[str, list[tuple[float, float]]]]]) -> str:
    lines = [
        "| training rows | validation rows | logged | epoch, ms | trueup adds | of this, logging |",
        "|---|---|---|---|---|---|",
    ]
    for case, times in rows:
        base = statistics.median(whole for whole, _ in times["without"])
        cells = [_added(times, part, base) for part in (0, 1)]
        logged = "each step and epoch" if case.logs_steps else "each epoch"
        lines.append(
            f"| {case.n_train} | {case.n_validation} | {logged} | {base * 1e3:.0f} | "
            f"{cells[0]} | {cells[1]} |"
        )
    return "\n".join(lines)


def _added(times: dict[str, list[tuple[float, float]]], part: int, base: float) -> str:
    """Return the median difference of the pairs, with the standard error of a normal sample's."""
    more = [
        after[part] - before[part]
        for before, after in zip(times["without"], times["with"], strict=True)
    ]
    low, median, high = statistics.quantiles(more, n=4)
    error = 1.2533 * (high - low) / 1.349 / len(more) ** 0.5
    return f"{median * 1e3:+.1f} ± {error * 1e3:.1f} ms ({median / base:+.1%} ± {error / base:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    pairs, load = parser.parse_args().pairs, os.getloadavg()[0]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        with mlflow.start_run():
            rows = [
                (case, measure(Training(case), max(3, pairs // (2 if case.is_large else 1))))
                for case in CASES
            ]
            memory, beyond = held_memory(50_000), beyond_one_metric()
    text = (
        "# What autologging costs a torch training\n\n"
        f"Networks of {COLUMNS} columns with 64 hidden units and batches of 64, and one with "
        "1,150 and 575 that takes about 10 ms a step; Adam, one thread, a SQLite store. CPU "
        "time, medians over "
        f"{pairs} pairs of epochs without and with autologging (half as many for the last two "
        f"rows) with their standard errors; torch {torch.__version__}, {platform.machine()}, load "
        f"{load:.0f} at the start. Written by `python benchmarks/autolog_overhead.py`.\n\n"
        f"{table(rows)}\n\n"
        "The logging call with autologging evaluates all validation rows and writes three metrics "
        f"more: MLflow alone takes {beyond * 1e3:.1f} ms more for four in `log_batch` than for one "
        f"in `log_metric`. After three epochs of 50,000 validation rows {memory:.0f} MiB of "
        "Python's memory more are held; tensors are kept up to 256 MiB.\n"
    )
    RESULT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
