"""How long the pages take: 2,000 and 20,000 runs with 20 metrics each, and 10,000 levels.

``python benchmarks/ui.py`` writes ``ui.md`` beside this file. The runs are put into SQLite by the
thousand, as MLflow's schema has them; everything else is the real server and MLflow's own client.
"""

from __future__ import annotations

import platform
import shutil
import sqlite3
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn
from mlflow import MlflowClient

from trueup_ui.web.server import local_app

RESULT = Path(__file__).with_suffix(".md")
SIZES = (2_000, 20_000)
SEEDS = 20
KEYS = [f"{own}metric_{number}" for number in range(10) for own in ("", "calibrated_")]
N_LEVELS = 10_000
REPEATS = 7


def fill(database: Path, experiment: str, n_runs: int) -> None:
    """Put pipelines of ``SEEDS`` runs each into the store."""
    rng = np.random.default_rng(0)
    runs, metrics, tags, params = [], [], [], []
    for number in range(n_runs // SEEDS):
        parent = f"{number:032x}"
        runs.append(_run(parent, f"pipeline {number}", number, experiment))
        for seed in range(SEEDS):
            run = f"{number * SEEDS + seed:016x}{'s' * 16}"
            runs.append(_run(run, f"seed {seed}", number, experiment))
            tags += [("mlflow.parentRunId", parent, run), ("trueup.seed", str(seed), run)]
            tags.append(("trueup.fingerprint.metric_0", "0" * 32, run))
            params += [("seed", str(seed), run), ("rate", str(number), run)]
            values = 0.5 + 0.001 * number + 0.01 * rng.normal(size=len(KEYS))
            metrics += [(key, v, 1, 0, False, run) for key, v in zip(KEYS, values, strict=True)]
    with sqlite3.connect(database) as store:
        store.executemany(
            "insert into runs (run_uuid, name, status, start_time, end_time, lifecycle_stage,"
            " artifact_uri, experiment_id, user_id)"
            " values (?, ?, 'FINISHED', ?, ?, 'active', '', ?, '')",
            runs,
        )
        columns = "(key, value, timestamp, step, is_nan, run_uuid)"
        store.executemany(
            f"insert into latest_metrics {columns} values (?, ?, ?, ?, ?, ?)", metrics
        )
        store.executemany("insert into tags (key, value, run_uuid) values (?, ?, ?)", tags)
        store.executemany("insert into params (key, value, run_uuid) values (?, ?, ?)", params)
    store.close()


def _run(run_id: str, name: str, number: int, experiment: str) -> tuple[str, str, int, int, str]:
    start = 1_700_000_000_000 + 3_600_000 * number  # an hour for each pipeline
    return run_id, name, start, start + 1_000, experiment


@contextmanager
def served(uri: str) -> Iterator[str]:
    """Serve the pages of a store from a thread."""
    server = uvicorn.Server(uvicorn.Config(local_app(uri), port=0, log_level="warning"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def seconds(url: str) -> tuple[float, float]:
    """Return the wall and the CPU seconds of an answer; server and client are this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    with urllib.request.urlopen(url) as answer:
        answer.read()
    return time.perf_counter() - wall, time.process_time() - cpu


def run_rows(template: Path, folder: Path, n_runs: int) -> Iterator[str]:
    """Yield the rows of the table for a store with so many runs."""
    database = folder / f"runs_{n_runs}.db"
    shutil.copy(template, database)
    uri = f"sqlite:///{database}"
    client = MlflowClient(uri)
    experiment = client.create_experiment("many")
    fill(database, experiment, n_runs)
    with served(uri) as address:
        own = f"{address}/experiment/{experiment}"
        seconds(f"{address}/models")  # what Python imports with the first page
        yield f"| {n_runs:,} runs: pipelines, first load | {_spread([seconds(own)])} |"
        for name, path in (("pipelines", own), ("compare", f"{own}/compare")):
            times = [seconds(path) for _ in range(REPEATS)]
            yield f"| {n_runs:,} runs: {name}, again | {_spread(times)} |"
        times = [seconds(f"{own}/version.json") for _ in range(REPEATS)]
        yield f"| {n_runs:,} runs: is there anything new? | {_spread(times)} |"
        run = client.create_run(experiment, tags={"trueup.seed": "0"}).info.run_id
        client.log_metric(run, "metric_0", 0.5)
        what = "pipelines, with a run that began since"
        yield f"| {n_runs:,} runs: {what} | {_spread([seconds(own)])} |"


def level_rows(template: Path, folder: Path) -> Iterator[str]:
    """Yield the rows of the table for a run with many levels."""
    database = folder / "levels.db"
    shutil.copy(template, database)
    client = MlflowClient(f"sqlite:///{database}")
    files = (folder / "files").as_uri()
    experiment = client.create_experiment("levels", artifact_location=files)
    run = client.create_run(experiment).info.run_id
    client.log_metric(run, "field_ece_site", 0.1)
    rng = np.random.default_rng(0)
    numbers = ("observed", "predicted", "difference", "p_value", "q_value", "offset", "low", "high")
    columns = {name: rng.random(N_LEVELS) for name in numbers}
    levels = pa.array([f"level {number}" for number in range(N_LEVELS)])
    field = pa.array(["site"] * N_LEVELS)
    table = pa.table({"field": field, "level": levels, "n": np.arange(N_LEVELS), **columns})
    path = folder / "fields_log_loss.parquet"
    pq.write_table(table, path)
    client.log_artifact(run, str(path), "trueup")
    with served(f"sqlite:///{database}") as address:
        url = f"{address}/experiment/{experiment}/fields"
        yield f"| {N_LEVELS:,} levels: first load | {_spread([seconds(url)])} |"
        times = [seconds(f"{url}?order=size&page={page + 1}") for page in range(REPEATS)]
        yield f"| {N_LEVELS:,} levels: other order, other pages | {_spread(times)} |"
        paints = [first_paint(url) for _ in range(REPEATS)]
        what = f"{N_LEVELS:,} levels: first paint in chromium, from the request on"
        wall = f"{statistics.median(paints):.2f} ({min(paints):.2f} to {max(paints):.2f})"
        yield f"| {what} | {wall} | |"


def first_paint(url: str) -> float:
    """Return the seconds from the request to the first contentful paint in a fresh browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page()
        page.goto(url, wait_until="networkidle")
        entries = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        milliseconds = page.evaluate(entries)
        browser.close()
    return float(milliseconds) / 1e3


def _spread(times: list[tuple[float, float]]) -> str:
    wall, cpu = zip(*times, strict=True)
    spread = f" ({min(wall):.2f} to {max(wall):.2f})" if len(wall) > 1 else ""
    return f"{statistics.median(wall):.2f}{spread} | {statistics.median(cpu):.2f}"


def report() -> Iterator[str]:
    """Yield the lines of the result."""
    yield "# How long the pages take\n"
    yield (
        f"`python benchmarks/ui.py` on {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite, {len(KEYS)} metrics a run, {SEEDS} seeds a pipeline, on a machine of two cores "
        "that others kept busy. Wall time from the request to the last byte counts their turns "
        "too; CPU time is that of server and client together, about what an idle machine would "
        "take. "
        f"Median of {REPEATS} (least to most) where repeated.\n"
    )
    yield "| what | wall, s | CPU, s |\n|---|--:|--:|"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        template = folder / "template.db"
        MlflowClient(f"sqlite:///{template}").search_experiments()
        yield from level_rows(template, folder)
        for n_runs in SIZES:
            yield from run_rows(template, folder, n_runs)


if __name__ == "__main__":
    with RESULT.open("w") as result:
        for line in report():
            print(line, file=result, flush=True)
