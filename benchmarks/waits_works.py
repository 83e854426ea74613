"""What waits.py measures: each work makes its input and returns what is timed."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

RUNS, ENOUGH_SECONDS = 9, 4.0


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


def large(work: str) -> Callable[[], object]:
    split, os.environ["TRUEUP_ENGINE"] = work.split("_")  # read at the import

    from trueup import CrossFit, HoldOut, evaluate

    r, chosen = rows(10_000_000), {"hold": HoldOut(), "cross": CrossFit()}[split]
    return lambda: evaluate(r["y"], r["p"], split=chosen)


def parquet() -> Callable[[], object]:
    from trueup import evaluate_files

    return lambda: evaluate_files(os.environ["PARQUET"], y_true="y", y_proba="p", row_id="id")


def parquet_read() -> Callable[[], object]:
    import pyarrow.parquet as pq

    def run() -> None:
        with pq.ParquetFile(os.environ["PARQUET"]) as reader:
            for batch in reader.iter_batches(1 << 20, use_threads=False):
                assert batch.num_rows

    return run


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
    "sklearn_large": lambda: sklearn_loss(10_000_000),
    **{
        name: lambda name=name: large(name)
        for name in ("hold_compiled", "cross_compiled", "cross_numpy")
    },
    "parquet": parquet,
    "parquet_read": parquet_read,
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
    runs, repetitions = (400, 5) if work in OFTEN else (RUNS, 1)
    found, start = [milliseconds(run, 1)], time.process_time()
    for _ in range(runs):
        found.append(milliseconds(run, repetitions))
        if time.process_time() - start > ENOUGH_SECONDS:
            break
    return min(found[1:])


def milliseconds(run: Callable[[], object], repetitions: int) -> float:
    start = time.process_time()
    for _ in range(repetitions):
        run()
    return (time.process_time() - start) / repetitions * 1e3
