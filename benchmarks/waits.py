"""What users wait for, beside what they would run in its place.

``python benchmarks/waits.py`` writes the section "What users wait for" of RESULTS.md;
``--before FOLDER`` measures another checkout in the same run, in turn with this one. Each time is
processor time of a process of its own, the smallest of up to nine runs after one that is not
counted (on 1,000 rows of up to 400, of five calls each); the first call and the command have no
run before them. ``--only WORK`` measures some rows
and keeps the others as they are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from waits_works import WORKS, measure

HERE = Path(__file__).resolve()
RESULTS = HERE.with_name("RESULTS.md")
SECTION = "## What users wait for"
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
    Wait("first call on 1,100,000 rows", "500", "first", "scikit-learn", "sklearn"),
    Wait("`evaluate`, 1,000 rows", ".12", "small", "scikit-learn `log_loss`", "sklearn_small"),
    Wait(
        "HoldOut, 10,000,000 rows",
        "20",
        "hold_compiled",
        "scikit-learn `log_loss`",
        "sklearn_large",
    ),
    Wait("CrossFit(5), the same rows", "22", "cross_compiled", "the same", "sklearn_large"),
    Wait("the same without compiled kernels", "80", "cross_numpy", "the same", "sklearn_large"),
    Wait("a parquet file of 30,000,000 rows", "180", "parquet", "reading alone", "parquet_read"),
]
TOO_SLOW_BEFORE = {"cost_1000"}  # half a minute: its row of 100 resamples tells


def in_process(work: str, checkout: Path, environment: dict[str, str]) -> float:
    """Return the milliseconds of a work in a new process that imports from a checkout."""
    paths = os.pathsep.join(str(checkout / folder) for folder in ("src", "plugins"))
    run = subprocess.run(
        [sys.executable, str(HERE), "--work", work],
        env={**os.environ, **environment, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout.splitlines()[-1])


def row(
    wait: Wait, before: Path | None, environment: dict[str, str], peers: dict[str, float]
) -> str:
    """Measure a row of the table: both checkouts, and its peer if no row before had the same."""
    here, old = HERE.parents[1], "–"
    now = in_process(wait.work, here, environment)
    if before and wait.work not in TOO_SLOW_BEFORE:
        old = f"{in_process(wait.work, before, environment):.3g}"
    if wait.peer_work and wait.peer_work not in peers:
        peers[wait.peer_work] = in_process(wait.peer_work, here, environment)
    peer = f"{wait.peer} {peers[wait.peer_work]:.3g}" if wait.peer_work else "–"
    return f"| {wait.title} | {old} | {now:.3g} | {wait.goal} | {peer} |"


def table(before: Path | None, only: list[str], kept: str) -> str:
    lines = ["| what | before, ms | now, ms | goal, ms | peer, ms |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.csv"
        file.write_text("click,p\n" + "0,0.2\n1,0.6\n0,0.3\n" * 200)
        large_file = Path(folder) / "rows.parquet"
        if not only or "parquet" in only:
            write = (
                f"from speed import write_parquet; write_parquet({str(large_file)!r}, 30_000_000)"
            )
            # Elsewhere: speed.py chooses the engine of its whole process, and of those it starts.
            subprocess.run([sys.executable, "-c", write], cwd=HERE.parent, check=True)
        environment = {"SMALL_CSV": str(file), "PARQUET": str(large_file)}
        environment |= dict.fromkeys(ONE_THREAD, "1")
        peers: dict[str, float] = {}
        for wait in WAITS:
            old = [line for line in kept.splitlines() if line.startswith(f"| {wait.title} |")]
            is_asked = not only or wait.work in only
            lines += [row(wait, before, environment, peers)] if is_asked else old
            print(lines[-1], flush=True)
    return "\n".join(lines)


def put_section(title: str, text: str) -> None:
    """Write a section of RESULTS.md in the place of the one with its title, or at the end."""
    others, _, old = RESULTS.read_text().partition(title)
    _, heading, following = old.partition("\n## ")
    RESULTS.write_text(f"{others.rstrip()}\n\n{title}\n\n{text}{heading}{following}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=WORKS, help="measure one work in this process")
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--only", nargs="+", default=[], help="works whose rows are measured")
    options = parser.parse_args()
    if options.work:
        print(measure(options.work))
        return
    kept = RESULTS.read_text().partition(SECTION)[2].partition("\n## ")[0]
    text = (
        "`python benchmarks/waits.py --before FOLDER`\n\n"
        "Processor time, one thread: the smallest of up to nine runs in one process, after one\n"
        "that is not counted (on 1,000 rows of up to 400, of five calls each); the command and\n"
        "the first call have no run before them. The peer\n"
        "is less than the same work: sums over levels without floor, tests, intervals; a mean\n"
        "in place of a bias and two losses; a loss alone. "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the start.\n\n"
        f"{table(options.before, options.only, kept)}\n"
    )
    put_section(SECTION, text)


if __name__ == "__main__":
    main()
