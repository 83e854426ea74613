"""What users wait for, beside what they would run in its place.

``python benchmarks/waits.py`` writes the section "What users wait for" of RESULTS.md;
``--before FOLDER`` measures another checkout in the same run, in turn with this one. Each time is
processor time of a process of its own, the smallest of up to five runs after one that is not
counted; the first call and the command have no run before them. ``--only WORK`` measures some rows
and keeps the others as they are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
SECTION = "## What users wait for"
RUNS, ENOUGH_SECONDS = 5, 3.0
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")


@dataclass(frozen=True)
class Wait:
    """A row of the table: its goal and its peer, both in words, and the works measured."""

    title: str
    goal: str
    work: str
    peer: str
    peer_work: str


WAITS = [
    Wait("`evaluate`, 500,000 rows, one field", "40", "field", "pandas group-by", "group_by"),
    Wait("`field_calibration`, 500,000 rows, 1,000 levels", "60", "levels", "the same", "group_by"),
    Wait("the same, weighted", "60", "weighted_levels", "the same", "group_by"),
    Wait(
        "`log_evaluation`, three weighted fields, 20,000 rows",
        "100",
        "logged",
        "`mlflow.log_metrics` of its numbers",
        "mlflow",
    ),
    Wait(
        "`bias_cost_interval`, 277,000 rows, 100 resamples", "–", "cost_100", "numpy means", "means"
    ),
    Wait("the same, 1,000 resamples", "500", "cost_1000", "–", ""),
    Wait("`trueup evaluate small.csv`", "400", "command", "pandas and scikit-learn", "script"),
    Wait("first call on 1,100,000 rows, nothing cached", "500", "first", "scikit-learn", "sklearn"),
    Wait("`evaluate`, 1,000 rows", ".12", "small", "scikit-learn `log_loss`", "sklearn_small"),
]
TOO_SLOW_BEFORE = {"cost_1000"}  # half a minute: its row of 100 resamples tells


def rows(n: int, n_levels: int = 1_000) -> dict[str, object]:
    import numpy as np

    rng = np.random.default_rng(0)
    logit = rng.normal(-1.6, 1.2, n)
    proba = 1.0 / (1.0 + np.exp(-logit))
    label = (rng.random(n) < proba).astype(np.float64)
    level, weight = rng.integers(0, n_levels, n), rng.uniform(0.2, 3.0, n)
    return {"y": label, "p": proba, "level": level, "w": weight}


def of_fields(work: str) -> Callable[[], object]:
    from trueup import evaluate, field_calibration

    r = rows(500_000)
    return {
        "field": lambda: evaluate(r["y"], r["p"], fields={"site": r["level"]}),
        "levels": lambda: field_calibration(r["y"], r["p"], r["level"]),
        "weighted_levels": lambda: field_calibration(
            r["y"], r["p"], r["level"], sample_weight=r["w"]
        ),
    }[work]


def group_by() -> Callable[[], object]:
    import pandas as pd

    r = rows(500_000)
    frame = pd.DataFrame({"d": r["y"] - r["p"], "level": r["level"]})
    return lambda: frame.groupby("level").agg(d=("d", "sum"), n=("d", "size"))


def with_store(log: Callable[[object], object]) -> Callable[[], object]:
    import mlflow

    folder = tempfile.mkdtemp()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/waits.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("w", f"file://{folder}/w"))
    mlflow.start_run()
    return lambda: log(mlflow)


def logged() -> Callable[[], object]:
    from trueup_mlflow import log_evaluation

    r = rows(20_000)
    fields = {"a": r["level"] % 30, "b": r["level"] % 200, "c": r["level"]}
    return with_store(lambda _: log_evaluation(r["y"], r["p"], sample_weight=r["w"], fields=fields))


def cost(n_resamples: int) -> Callable[[], object]:
    from trueup import bias_cost_interval

    r = rows(277_000)
    return lambda: bias_cost_interval(r["y"], r["p"], n_resamples=n_resamples)


def means() -> Callable[[], object]:
    import numpy as np

    r, rng = rows(277_000), np.random.default_rng(0)
    gap, n = r["y"] - r["p"], 277_000
    return lambda: [gap[rng.integers(0, n, n)].mean() for _ in range(100)]


def sklearn_loss(n: int) -> Callable[[], object]:
    from sklearn.metrics import log_loss

    r = rows(n)
    return lambda: log_loss(r["y"], r["p"])


def small(n: int) -> Callable[[], object]:
    from trueup import evaluate

    r = rows(n)
    return lambda: evaluate(r["y"], r["p"])


def command() -> Callable[[], object]:
    from trueup_cli import main as trueup

    sys.argv = ["trueup", "evaluate", os.environ["SMALL_CSV"], "--target", "click", "--proba", "p"]

    def run() -> None:
        with suppress(SystemExit):
            trueup()

    return run


def script() -> Callable[[], object]:
    import pandas as pd
    from sklearn.metrics import log_loss

    def run() -> None:
        frame = pd.read_csv(os.environ["SMALL_CSV"])
        print(log_loss(frame.click, frame.p))

    return run


WORKS: dict[str, Callable[[], Callable[[], object]]] = {
    **{name: lambda name=name: of_fields(name) for name in ("field", "levels", "weighted_levels")},
    "group_by": group_by,
    "logged": logged,
    "mlflow": lambda: with_store(lambda m: m.log_metrics({f"m{i}": 0.5 for i in range(13)})),
    "cost_100": lambda: cost(100),
    "cost_1000": lambda: cost(1_000),
    "means": means,
    "command": command,
    "script": script,
    "first": lambda: small(1_100_000),
    "sklearn": lambda: sklearn_loss(1_100_000),
    "small": lambda: small(1_000),
    "sklearn_small": lambda: sklearn_loss(1_000),
}
WHOLE = {"command", "script"}  # the imports count
ONCE = {"first", "sklearn"}
OFTEN = {"small", "sklearn_small"}


def measure(work: str) -> float:
    """Return the milliseconds of a work in this process."""
    if work in WHOLE:
        WORKS[work]()()
        return time.process_time() * 1e3
    run = WORKS[work]()
    if work in ONCE:
        return milliseconds(run, 1)
    repetitions = 200 if work in OFTEN else 1
    found, start = [milliseconds(run, 1)], time.process_time()
    for _ in range(RUNS):
        found.append(milliseconds(run, repetitions))
        if time.process_time() - start > ENOUGH_SECONDS:
            break
    return min(found[1:])


def milliseconds(run: Callable[[], object], repetitions: int) -> float:
    start = time.process_time()
    for _ in range(repetitions):
        run()
    return (time.process_time() - start) / repetitions * 1e3


def in_process(work: str, checkout: Path, environment: dict[str, str]) -> float:
    """Return the milliseconds of a work in a new process that imports from a checkout."""
    paths = os.pathsep.join(str(checkout / folder) for folder in ("src", "plugins"))
    with tempfile.TemporaryDirectory() as empty:
        cache = {"NUMBA_CACHE_DIR": empty} if work == "first" else {}
        run = subprocess.run(
            [sys.executable, str(HERE), "--work", work],
            env={**os.environ, **environment, **cache, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        )
    return float(run.stdout.splitlines()[-1])


def row(wait: Wait, before: Path | None, environment: dict[str, str]) -> str:
    """Measure a row of the table, this checkout in turn with the other and with the peer."""
    here = HERE.parents[1]
    works = [("now", wait.work, here), ("peer", wait.peer_work, here)]
    if before and wait.work not in TOO_SLOW_BEFORE:
        works.append(("before", wait.work, before))
    took = {
        name: f"{in_process(work, checkout, environment):.3g}"
        for name, work, checkout in works
        if work
    }
    peer = f"{wait.peer} {took['peer']}" if wait.peer_work else "–"
    return f"| {wait.title} | {took.get('before', '–')} | {took['now']} | {wait.goal} | {peer} |"


def table(before: Path | None, only: list[str], kept: str) -> str:
    lines = ["| what | before, ms | now, ms | goal, ms | peer, ms |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.csv"
        file.write_text("click,p\n" + "0,0.2\n1,0.6\n0,0.3\n" * 200)
        environment = {"SMALL_CSV": str(file), **dict.fromkeys(ONE_THREAD, "1")}
        for wait in WAITS:
            old = [line for line in kept.splitlines() if line.startswith(f"| {wait.title} |")]
            is_asked = not only or wait.work in only
            lines += [row(wait, before, environment)] if is_asked else old
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, help="measure one work in this process")
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--only", nargs="+", default=[], help="works whose rows are measured")
    options = parser.parse_args()
    if options.work:
        print(measure(options.work))
        return
    results = HERE.parent / "RESULTS.md"
    others, _, kept = results.read_text().partition(SECTION)
    text = (
        f"{SECTION}\n\n`python benchmarks/waits.py --before FOLDER`\n\n"
        "Processor time, one thread: the smallest of up to five runs in one process, after one\n"
        "that is not counted; the command and the first call have no run before them. The peer\n"
        "is less than the same work: sums over levels without floor, tests, intervals; a mean\n"
        "in place of a bias and two losses; a loss alone. "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the start.\n\n"
        f"{table(options.before, options.only, kept)}\n"
    )
    results.write_text(f"{others.rstrip()}\n\n{text}")


if __name__ == "__main__":
    main()
