"""Monitoring at scale: ``status`` of 500 versions with 10,000 batches; a batch of 1 million rows.

``python benchmarks/monitor_scale.py`` writes ``monitor_scale.md`` beside this file. Both go through
an MLflow SQLite store in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import tempfile
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from sklearn.linear_model import LinearRegression

from trueup_mlflow import monitor
from trueup_mlflow.write.items import ROLE_TAG
from trueup_mlflow.write.monitor_items import (
    BATCH_TAG,
    CLAIM_PARAM,
    ESTIMATED,
    MODEL_TAG,
    MONITOR_ROLE,
    VERSION_OF_MODEL_TAG,
    BatchRecord,
)

RESULT = Path(__file__).with_suffix(".md")
NAME = "demand"
AT_ONCE = 100  # parameters, the most that MLflow takes in one request


def fill(versions: int, batches: int) -> None:
    """Write monitor runs as ``monitor.estimate`` leaves them; 10 versions a model."""
    client = MlflowClient()
    for number in range(versions):
        model, version = f"model{number // 10}", str(number % 10 + 1)
        experiment = client.get_experiment_by_name(f"trueup/{model}")
        tags = {ROLE_TAG: MONITOR_ROLE, MODEL_TAG: model, VERSION_OF_MODEL_TAG: version}
        identity = (
            client.create_experiment(f"trueup/{model}")
            if experiment is None
            else experiment.experiment_id
        )
        run_id = client.create_run(identity, tags=tags).info.run_id
        for start in range(0, batches, AT_ONCE):
            records = [_record(step) for step in range(start, min(start + AT_ONCE, batches))]
            client.log_batch(
                run_id,
                [Metric(ESTIMATED, 1.0, r.timestamp, r.step) for r in records],
                [Param(CLAIM_PARAM + r.digest, json.dumps(_claim(r))) for r in records],
                [RunTag(BATCH_TAG + r.digest, json.dumps(r.to_json())) for r in records],
            )


def _claim(record: BatchRecord) -> dict[str, object]:
    metrics = dict.fromkeys((f"support/measure{k}" for k in range(9)), 0.1234567890123456)
    return {"step": record.step, "timestamp": record.timestamp, "metrics": metrics}


def _record(step: int) -> BatchRecord:
    members = dict.fromkeys(("importance", "neighbours", "disagreement", "a", "b"), 1.0)
    estimate = {"mse": 1.0, "low": 0.5, "high": 2.0, "trusted": True, "reasons": []}
    estimate |= {"members": members, "n": 1000, "diagnostics": members}
    moved = tuple((f"feature{k}", 0.1) for k in range(5))
    return BatchRecord(f"{step:016x}", step, 86_400_000 * step, 1000, estimate, moved, True)


def table(n: int, columns: int, seed: int) -> pd.DataFrame:
    """Return normal features and a target of the first of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns))
    found = pd.DataFrame(x, columns=[f"x{k}" for k in range(columns)])
    return found.assign(y=x[:, 0] + 0.5 * rng.normal(size=n))


def prepare(folder: Path, rows: int, columns: int, reference_rows: int) -> None:
    """Register a model and its check, and write the batch as parquet."""
    reference = table(reference_rows, columns, 0)
    features = reference.drop(columns="y")
    with mlflow.start_run():
        mlflow.sklearn.log_model(
            LinearRegression().fit(features, reference["y"]),
            name="model",
            registered_model_name=NAME,
            pip_requirements=["scikit-learn"],
        )
    monitor.init(f"models:/{NAME}/1", table(reference_rows, columns, 1), target="y")
    table(rows, columns, 2).drop(columns="y").to_parquet(folder / "batch.parquet")


def one_batch(uri: str, path: str) -> tuple[float, float, float]:
    """Return seconds, the process's peak in GB, and its size after the imports alone."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    mlflow.set_tracking_uri(uri)
    imported = _peak()
    start = time.perf_counter()
    monitor.estimate(f"models:/{NAME}/1", path, at="2026-01-31")
    return time.perf_counter() - start, _peak(), imported


def _peak() -> float:
    """Return this process's own peak; ``getrusage`` would count its parent's before the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=500)
    parser.add_argument("--batches", type=int, default=20, help="Of each version.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--reference-rows", type=int, default=5_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        uri = f"sqlite:///{folder}/mlflow.db"
        mlflow.set_tracking_uri(uri)
        fill(asked.versions, asked.batches)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            assert len(monitor.status()) == asked.versions
            times.append(time.perf_counter() - start)
        prepare(folder, asked.rows, asked.columns, asked.reference_rows)
        with get_context("spawn").Pool(1) as pool:
            batch = pool.apply(one_batch, (uri, str(folder / "batch.parquet")))
    RESULT.write_text(
        "# Monitoring at scale\n\n"
        f"`python benchmarks/monitor_scale.py` on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, SQLite store.\n\n"
        "| what | measured | aim |\n|---|---|---|\n"
        f"| `status`, {asked.versions} versions with {asked.versions * asked.batches:,} batches, "
        f"after imports: median and longest of 5 | {np.median(times):.2f} s, {max(times):.2f} s "
        "| 2 s |\n"
        f"| `estimate`, {asked.rows:,} rows x {asked.columns} columns from parquet, reference of "
        f"{asked.reference_rows:,} rows: reading, predicting, estimating, logging "
        f"| {batch[0]:.1f} s | 30 s |\n"
        f"| peak memory of that process (after imports alone: {batch[2]:.2f} GB) "
        f"| {batch[1]:.2f} GB | 2 GB |\n"
    )


if __name__ == "__main__":
    main()
