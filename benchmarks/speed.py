"""Speed and memory of trueup and of its peers, alternating in one process.

``python benchmarks/speed.py`` writes RESULTS.md beside this file. Times are minima over
repetitions that alternate between trueup and its peers, in processor time of the process, which a
loaded machine distorts less than the clock; peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402  (the number of threads is read at the import)
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import torch  # noqa: E402
from scipy.special import expit  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402

import trueup._kernels as _kernels  # noqa: E402
from trueup import (  # noqa: E402
    CrossFit,
    FieldCalibration,
    HoldOut,
    InSample,
    evaluate,
    expected_calibration_error,
    field_calibration_error,
)
from trueup._kernels import numpy_engine  # noqa: E402
from trueup.summaries import FieldSummary, LogLossSummary  # noqa: E402

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "pandas", "polars", "pyarrow")
REPETITIONS, FILE_REPETITIONS = 7, 3


@dataclass(frozen=True)
class Work:
    """One row of the table: what trueup does, and what its peers do."""

    title: str
    goal: str
    n: int
    trueup: Callable[[], object]
    peers: dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Rows:
    """Labels, probabilities, logits and ids of the same rows."""

    y_true: np.ndarray
    y_pred: np.ndarray
    logit: np.ndarray
    ids: np.ndarray


def draw(n: int) -> Rows:
    rng = np.random.default_rng(0)
    logit = rng.normal(-1.6, 1.2, n)
    y_true = (rng.random(n) < expit(0.9 * logit + 0.1)).astype(np.float64)
    return Rows(y_true, expit(logit), logit, np.arange(n))


def minima(work: Work) -> dict[str, float]:
    """Return the nanoseconds a row of trueup and of each peer, run in turn."""
    runs = {"trueup": work.trueup, **work.peers}
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        run()
    for _ in range(REPETITIONS):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return {name: seconds / work.n * 1e9 for name, seconds in best.items()}


def log_loss_works(rows: Rows) -> list[Work]:
    y, p, logit, n = rows.y_true, rows.y_pred, rows.logit, len(rows.y_true)
    y_torch, logit_torch = torch.from_numpy(y), torch.from_numpy(logit)
    sklearn = {"scikit-learn log_loss": lambda: log_loss(y, p)}

    def two_logs() -> float:
        return -float((y * np.log(p) + (1.0 - y) * np.log(1.0 - p)).mean())

    def bce() -> float:
        return torch.nn.functional.binary_cross_entropy_with_logits(logit_torch, y_torch).item()

    numpy_peer = {"numpy, two logs": two_logs}
    return [
        Work(
            "HoldOut, from probabilities", "2", n, lambda: evaluate(y, p, split=HoldOut()), sklearn
        ),
        Work("CrossFit(5), from probabilities", "6", n, lambda: evaluate(y, p), sklearn),
        Work("InSample", "–", n, lambda: evaluate(y, p, split=InSample()), numpy_peer),
        Work(
            "CrossFit(5), from logits",
            "5",
            n,
            lambda: evaluate(y, y_logit=logit),
            {"torch BCE with logits": bce},
        ),
    ]


def without_compiled_loops(rows: Rows) -> Work:
    y, p = rows.y_true, rows.y_pred

    def run() -> float:
        chosen, _kernels.engine = _kernels.engine, numpy_engine
        try:
            return evaluate(y, p).calibrated
        finally:
            _kernels.engine = chosen

    def two_logs() -> float:
        return -float((y * np.log(p) + (1.0 - y) * np.log(1.0 - p)).mean())

    title = "CrossFit(5), from probabilities, without compiled loops"
    return Work(title, "8", len(y), run, {"numpy, two logs": two_logs})


def summary_update(rows: Rows) -> Work:
    def update() -> None:
        LogLossSummary(CrossFit()).update(rows.y_true, y_logit=rows.logit, row_id=rows.ids)

    return Work("LogLossSummary.update, from logits", "6", len(rows.ids), update, {})


def field_works(rows: Rows, n_values: int, goal: str) -> list[Work]:
    y, p = rows.y_true, rows.y_pred
    skewed = np.random.default_rng(1).random(len(y)) ** 3
    code = np.minimum((n_values * skewed).astype(np.int64), n_values - 1)
    frame = pd.DataFrame({"z": code, "d": y - p, "y": y})
    lazy = pl.DataFrame({"z": code, "d": y - p, "y": y})

    def with_pandas() -> float:
        cells = frame.groupby("z", sort=False).agg(d=("d", "sum"), y=("y", "sum"), n=("y", "size"))
        return float(cells.d.abs().sum() + (cells.d.abs() / (cells.y / cells.n + 0.01)).sum())

    def with_polars() -> float:
        cells = lazy.group_by("z").agg(
            pl.col("d").sum().abs(), pl.col("y").sum(), pl.len().alias("n")
        )
        relative = cells["d"] / (cells["y"] / cells["n"] + 0.01)
        return float(cells["d"].sum() + relative.sum())

    def both_errors() -> tuple[float, float]:
        return (
            field_calibration_error(y, p, code),
            field_calibration_error(y, p, code, relative=True),
        )

    def one_summary() -> FieldCalibration:
        summary = FieldSummary("site")
        summary.update(y, p, code)
        return summary.compute()

    title = f"Field-ECE and Field-RCE on codes, {n_values:,} values"
    peers = {"pandas group-by": with_pandas, "polars group-by": with_polars}
    return [
        Work(f"{title}, two calls", goal, len(y), both_errors, peers),
        Work(f"{title}, one FieldSummary, floor too", goal, len(y), one_summary, {}),
    ]


def probability_ece(rows: Rows) -> Work:
    y, p = rows.y_true, rows.y_pred
    peers: dict[str, Callable[[], object]] = {}
    try:
        from torchmetrics.functional.classification import binary_calibration_error

        p_torch = torch.from_numpy(p.astype(np.float32))
        y_torch = torch.from_numpy(y.astype(np.int64))
        peers["torchmetrics"] = lambda: binary_calibration_error(p_torch, y_torch, n_bins=15)
    except ImportError:
        pass
    try:
        from netcal.metrics import ECE

        labels = y.astype(np.int64)
        peers["netcal"] = lambda: ECE(15).measure(p, labels)
    except ImportError:
        pass
    title = "Prob-ECE, 15 bins"
    return Work(title, "4", len(y), lambda: expected_calibration_error(y, p), peers)


def small_inputs() -> list[str]:
    lines = []
    for n in (256, 1_000, 10_000):
        rows = draw(n)
        best = float("inf")
        for _ in range(300):
            start = time.perf_counter()
            evaluate(rows.y_true, rows.y_pred)
            best = min(best, time.perf_counter() - start)
        lines.append(f"| {n:,} | {best * 1e3:.2f} |")
    return lines


PEAK = """
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
"""

MEMORY = """
import numpy as np
import trueup, trueup.evaluation.evaluate
n = {n}
rng = np.random.default_rng(0)
p = rng.random(n)
y = np.empty(n, dtype=np.float64)
for i in range(0, n, 1_000_000):
    y[i:i + 1_000_000] = rng.random(len(p[i:i + 1_000_000])) < p[i:i + 1_000_000]
before = peak()
trueup.evaluate(y, p)
print(peak() - before)
"""

FILE = """
import time
import pandas, pyarrow.parquet
from trueup import evaluate_files
start, clock = time.process_time(), time.perf_counter()
evaluate_files({path!r}, y_true="y", y_proba="p", row_id="id")
print(peak(), time.process_time() - start, time.perf_counter() - clock)
"""

READ = """
import time
import pyarrow.parquet as pq
start, clock = time.process_time(), time.perf_counter()
with pq.ParquetFile({path!r}) as reader:
    for group in range(reader.num_row_groups):
        for batch in reader.iter_batches(1 << 20, row_groups=[group], use_threads=False):
            pass
print(peak(), time.process_time() - start, time.perf_counter() - clock)
"""

LAZY = """
import time
import polars as pl
start, clock = time.process_time(), time.perf_counter()
y, p = pl.col("y"), pl.col("p")
loss = pl.when(y == 1).then(-p.log()).otherwise(-(1 - p).log()).mean()
pl.scan_parquet({path!r}).select(loss).collect(engine="streaming")
print(peak(), time.process_time() - start, time.perf_counter() - clock)
"""


def fresh_process(code: str) -> list[float]:
    run = subprocess.run(
        [sys.executable, "-c", PEAK + code], capture_output=True, text=True, check=True
    )
    return [float(number) for number in run.stdout.split()]


def write_parquet(path: Path, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("y", pa.int8()), ("p", pa.float64()), ("id", pa.int64())])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, 1_000_000):
            ids = np.arange(start, min(start + 1_000_000, n))
            p = rng.random(len(ids))
            columns = [pa.array((rng.random(len(ids)) < p).astype(np.int8)), pa.array(p)]
            table = pa.table([*columns, pa.array(ids)], schema=schema)
            writer.write_table(table, row_group_size=1_000_000)


def file_lines(n: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, n)
        works = {
            "evaluate_files, CrossFit(5)": FILE.format(path=str(path)),
            "polars lazy log loss, streaming": LAZY.format(path=str(path)),
            "reading the columns alone": READ.format(path=str(path)),
        }
        lines = ["| work | memory, MB | ns/row | clock, ns/row |", "|---|---|---|---|"]
        for title, code in works.items():
            runs = [fresh_process(code) for _ in range(FILE_REPETITIONS)]
            memory, seconds, waited = zip(*runs, strict=True)
            times = f"{min(seconds) / n * 1e9:.1f} | {min(waited) / n * 1e9:.1f}"
            lines.append(f"| {title} | {max(memory):.0f} | {times} |")
    return lines


def machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    load = os.getloadavg()[0]
    return (
        f"{cpu}, {os.cpu_count()} cores, load {load:.0f} at the start, Python "
        f"{platform.python_version()}, {versions}."
    )


def table(works: list[Work]) -> list[str]:
    lines = [
        "| work | goal, ns/row | trueup, ns/row | peer, ns/row | ratio |",
        "|---|---|---|---|---|",
    ]
    for work in works:
        best = minima(work)
        own = best.pop("trueup")
        peers = "; ".join(f"{name} {value:.1f}" for name, value in best.items()) or "–"
        ratios = "; ".join(f"{value / own:.1f}x" for value in best.values()) or "–"
        lines.append(f"| {work.title} | {work.goal} | {own:.1f} | {peers} | {ratios} |")
        print(lines[-1], file=sys.stderr)
    return lines


def report(n: int, n_memory: int, n_file: int) -> str:
    first, rows = machine(), draw(n)
    works = [
        *log_loss_works(rows),
        without_compiled_loops(rows),
        summary_update(rows),
        *field_works(rows, 5_683, "2.5"),
        *field_works(rows, 100_000, "6"),
        probability_ece(rows),
    ]
    (grown,) = fresh_process(MEMORY.format(n=n_memory))
    return "\n".join(
        [
            "# Speed and memory",
            "",
            "`python benchmarks/speed.py`",
            "",
            first,
            "",
            f"{n:,} rows in float64, one thread, minima over {REPETITIONS} alternating runs in "
            "processor time. trueup's numbers include the checks of the input, the vanilla and "
            "the calibrated loss, the bias terms of all folds, both standard errors and the "
            "fingerprint of the rows.",
            "",
            *table(works),
            "",
            "## Small inputs",
            "",
            "CrossFit(5) from probabilities, clock time.",
            "",
            "| rows | ms |",
            "|---|---|",
            *small_inputs(),
            "",
            "## Memory",
            "",
            f"`evaluate` on {n_memory:,} rows in memory: {grown:.0f} MB beyond the input.",
            "",
            f"A parquet file of {n_file:,} rows and 3 columns, each in a fresh process, best "
            f"of {FILE_REPETITIONS} runs in processor time and by the clock:",
            "",
            *file_lines(n_file),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-rows", type=int, default=100_000_000)
    parser.add_argument("--file-rows", type=int, default=200_000_000)
    options = parser.parse_args()
    text = report(options.rows, options.memory_rows, options.file_rows)
    results = Path(__file__).parent / "RESULTS.md"
    _, title, waits = results.read_text().partition("## What users wait for")  # of waits.py
    results.write_text(f"{text.rstrip()}\n\n{title}{waits}")


if __name__ == "__main__":
    main()
