"""What the MLflow plugin costs: importing MLflow, a hooked metric call, a logged metric.

``python benchmarks/mlflow_overhead.py`` writes ``mlflow_overhead.md`` beside this file.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

RESULT = Path(__file__).with_suffix(".md")
_LOAD_AS_MLFLOW_DOES = """
import sys, time
import mlflow
from mlflow.utils.plugins import get_entry_points
for name in [name for name in sys.modules if name.startswith("trueup")]:
    del sys.modules[name]
(point,) = [p for p in get_entry_points("mlflow.run_context_provider") if p.name == "trueup"]
start = time.perf_counter()
point.load()()
print(time.perf_counter() - start)
"""
ROWS = (1_000, 100_000, 1_000_000)


def import_cost(n_processes: int) -> list[float]:
    """Return the milliseconds that trueup takes of ``import mlflow`` in fresh processes."""
    return [_own_import_milliseconds() for _ in range(n_processes)]


def _own_import_milliseconds() -> float:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRUEUP_")}
    run = subprocess.run(
        [sys.executable, "-c", _LOAD_AS_MLFLOW_DOES],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return float(run.stdout) * 1000.0


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """Return the shortest time of a call, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1000.0


def metric_calls(repeats: int) -> list[tuple[str, int, float, float, float]]:
    """Return metric, rows, and the milliseconds: plain call, hooked call, evaluation."""
    import numpy as np
    from sklearn.metrics import brier_score_loss, log_loss, mean_squared_error

    from trueup import evaluate
    from trueup_mlflow import autolog

    functions = {
        log_loss: "log_loss",
        brier_score_loss: "brier_score",
        mean_squared_error: "mean_squared_error",
    }
    table = []
    for n in ROWS:
        rng = np.random.default_rng(0)
        p = rng.uniform(0.01, 0.99, n)
        y = (rng.uniform(size=n) < p).astype(int)
        for function, loss in functions.items():
            call = partial(function, y, p)
            plain = best_of(repeats, call)
            autolog()
            hooked = best_of(repeats, call)
            autolog(disable=True)
            evaluation = best_of(repeats, partial(evaluate, y, p, loss=loss))
            table.append((function.__name__, n, plain, hooked, evaluation))
    return table


def logged_metrics(repeats: int) -> list[tuple[str, float, float]]:
    """Return the milliseconds of a logged metric, without and with its twins, on SQLite."""
    import mlflow
    import numpy as np
    from sklearn.metrics import log_loss

    from trueup_mlflow import autolog

    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 1000)
    y = (rng.uniform(size=1000) < p).astype(int)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        with mlflow.start_run():
            plain = _log_each(repeats, lambda: 0.123456789, log_loss, y, p)
            autolog()
            unmatched = _log_each(repeats, lambda: 0.123456789, log_loss, y, p)
            matched = _log_each(repeats, None, log_loss, y, p)
            autolog(disable=True)
        results.append(("not recognised", plain, unmatched))
        results.append(("recognised, 1000 rows", plain, matched))
    return results


def _log_each(repeats, constant, metric, y, p) -> float:
    import mlflow

    times = []
    for step in range(repeats):
        value = constant() if constant else metric(y, p * (0.9 + 0.0001 * step))
        start = time.perf_counter()
        mlflow.log_metric("loss", value, step=step)
        times.append(time.perf_counter() - start)
    return min(times) * 1000.0


def report(n_processes: int, repeats: int) -> str:
    """Measure everything and return it as Markdown."""
    imports = import_cost(n_processes)
    lines = [
        "# What the MLflow plugin costs",
        "",
        f"`python benchmarks/mlflow_overhead.py` on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}. Shortest of {repeats} calls each.",
        "",
        "## `import mlflow` with the plugin installed and off",
        "",
        f"Loading and constructing the context provider in {n_processes} fresh processes: "
        f"median {statistics.median(imports):.2f} ms, largest {max(imports):.2f} ms. "
        "Aim: 10 ms at most.",
        "",
        "## A metric call under autologging",
        "",
        "The call itself only keeps a copy of its arguments; the evaluation happens when the "
        "number is logged, once.",
        "",
        "| metric | rows | plain, ms | hooked, ms | ratio | evaluation when logged, ms |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, n, plain, hooked, evaluation in metric_calls(repeats):
        lines.append(
            f"| {name} | {n:,} | {plain:.2f} | {hooked:.2f} | {hooked / plain:.2f} "
            f"| {evaluation:.2f} |"
        )
    lines += [
        "",
        "## A logged metric (`mlflow.log_metric`, SQLite)",
        "",
        "| number | without autologging, ms | with, ms |",
        "|---|--:|--:|",
    ]
    for name, plain, with_autolog in logged_metrics(repeats):
        lines.append(f"| {name} | {plain:.1f} | {with_autolog:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    RESULT.write_text(report(arguments.processes, arguments.repeats))
    print(RESULT.read_text())


if __name__ == "__main__":
    main()
