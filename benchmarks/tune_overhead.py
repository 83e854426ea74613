"""What the seed race costs beside the trainings: decisions, storage, processes.

``python benchmarks/tune_overhead.py`` writes ``benchmarks/tune_overhead.md``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import optuna
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from trueup_optuna import SeedList, SeedObjective, SeedRacePruner
from trueup_optuna.runtime.journal import open_journal

PROCESSES, TRIALS_PER_PROCESS = 4, 100


def train(trial, seed):
    x = trial.suggest_float("x", -1.0, 1.0)
    for index in range(3):
        x += 0.0 * trial.suggest_float(f"y{index}", 0.0, 1.0)
    return x**2 + 0.01 * np.random.default_rng([seed, trial.number]).standard_normal()


def study_in(storage: BaseStorage, n_configs: int, name: str = "overhead") -> optuna.Study:
    return optuna.create_study(
        storage=storage,
        study_name=name,
        load_if_exists=True,
        sampler=optuna.samplers.RandomSampler(),
        pruner=SeedRacePruner(n_configs),
    )


def decision_seconds(n_trials: int) -> float:
    """Return the median time of should_prune in memory, with three seeds a trial."""
    study = study_in(InMemoryStorage(), n_trials + 10)
    for values in np.random.default_rng(0).normal(size=(n_trials, 3)):
        means = np.cumsum(values) / np.arange(1, 4)
        steps = {index: float(mean) for index, mean in enumerate(means)}
        study.add_trial(optuna.create_trial(value=steps[2], intermediate_values=steps))
    trial = study.ask()
    for index in range(3):
        trial.report(0.1, index)
    trial.should_prune()
    return float(np.median([seconds(trial.should_prune, time.process_time) for _ in range(30)]))


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    call()
    return clock() - started


def seed_seconds(storage: BaseStorage, n_trials: int = 60, seeds: int = 5) -> tuple[float, float]:
    """Return the CPU seconds of a seed, and those of a trial besides its seeds."""
    costs = []
    for n_base in (1, seeds):
        study = study_in(storage, n_trials, f"seeds-{n_base}")
        objective = SeedObjective(
            train, seeds=SeedList(seeds), n_base=n_base, n_startup_seeds=n_base
        )
        costs.append(
            seconds(
                lambda s=study, o=objective: s.optimize(o, n_trials=n_trials), time.process_time
            )
        )
    per_seed = (costs[1] - costs[0]) / (n_trials * (seeds - 1))
    return per_seed, costs[0] / n_trials - per_seed


def throughput(journal: str, what: str) -> float:
    """Return the trials per second of four processes with one seed a trial on one journal."""
    command = [sys.executable, __file__, journal, what]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.close()
    return PROCESSES * TRIALS_PER_PROCESS / seconds(lambda: [worker.wait() for worker in workers])


def plain(trial):
    """Do what Optuna alone does: one report and one decision a trial."""
    trial.report(train(trial, 0), 0)
    trial.should_prune()
    return 0.0


def fsync_seconds(folder: str) -> float:
    """Return the median time to append a line and flush it to the disk."""

    def append() -> None:
        with open(f"{folder}/line", "ab") as file:
            file.write(b"x" * 150)
            file.flush()
            os.fsync(file.fileno())

    return float(np.median([seconds(append) for _ in range(200)]))


def work(journal: str, what: str) -> None:
    local = what == "race"
    storage = open_journal(journal) if local else JournalStorage(JournalFileBackend(journal))
    study = study_in(storage, 1000)
    objective = SeedObjective(train, seeds=[0], n_base=1)
    if what == "plain":
        study.pruner, objective = optuna.pruners.MedianPruner(), plain
    print("ready", flush=True)
    sys.stdin.read()
    study.optimize(objective, n_trials=TRIALS_PER_PROCESS)


def report() -> Iterator[str]:
    yield "# Cost of the seed race\n"
    yield "Written by `python benchmarks/tune_overhead.py`, trainings that take no time, on a "
    yield "machine that others kept busy: CPU time where one process is measured.\n"
    yield "| what | measured |\n|---|---|"
    for n_trials in (100, 1000, 3000):
        milliseconds = 1e3 * decision_seconds(n_trials)
        yield f"| should_prune at {n_trials:,} trials, in memory, CPU | {milliseconds:.1f} ms |"
    with tempfile.TemporaryDirectory() as folder:
        milliseconds = 1e3 * fsync_seconds(folder)
        yield f"| append a line and flush it to this disk (fsync), median | {milliseconds:.1f} ms |"
        journal = open_journal(f"{folder}/seeds.journal")
        sqlite = RDBStorage(f"sqlite:///{folder}/seeds.db")
        for name, storage in (("journal file", journal), ("SQLite", sqlite)):
            per_seed, per_trial = seed_seconds(storage)
            yield f"| a seed (result, report, decision), {name}, CPU | {1e3 * per_seed:.1f} ms |"
            yield f"| a trial besides its seeds, {name}, CPU | {1e3 * per_trial:.1f} ms |"
        for what, label in (
            ("race", "trials of one seed, open_journal"),
            ("optuna", "trials of one seed, Optuna's own journal backend"),
            ("plain", "Optuna alone, MedianPruner, its own backend"),
        ):
            rate = throughput(f"{folder}/{what}.journal", what)
            yield f"| {label}, {PROCESSES} processes, one journal | {rate:.0f} per second |"


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if len(sys.argv) == 3:
        work(*sys.argv[1:])
        return
    Path(__file__).with_suffix(".md").write_text("\n".join(report()) + "\n")


if __name__ == "__main__":
    main()
