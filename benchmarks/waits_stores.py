"""What users of a store wait for: the monitor's commands, and seeds.

``python benchmarks/waits_stores.py`` writes the section "Waits at a store" of RESULTS.md;
``--before FOLDER`` measures another checkout in turn with this one, on the same stores. Each time
is processor time of a command with all that it starts, the smaller of two runs on a SQLite store;
each estimate is of a batch that the store does not have yet.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from waits import put_section

HERE = Path(__file__).resolve()
SECTION = "## Waits at a store"
RUNS, SEEDS = 2, 5
STORES = {"few": (50, 20), "many": (50, 100), "most": (100, 500)}  # versions, batches of each
REFERENCE_ROWS = 5_300
MODEL = "models:/demand/1"
TRUEUP = (sys.executable, "-c", "from trueup_cli import main; main()")
STORE = "import mlflow; client = mlflow.MlflowClient(); client.search_registered_models()"
READ = "client.search_runs([e.experiment_id for e in client.search_experiments()])"
TRAIN = """import mlflow
with mlflow.start_run():
    mlflow.log_metric("val_loss", 0.5)
"""
PROJECT = f"""name: p
entry_points:
  main: {{command: "{sys.executable} train.py"}}
"""


@dataclass(frozen=True)
class Row:
    """A row of the table: how many seconds its goal is beyond which peer, and what bounds it."""

    title: str
    work: str
    peer: str = ""
    beyond: float = 0.0
    bound: str = "a peer"

    def line(self, now: Mapping[str, float], before: Mapping[str, float]) -> str:
        old = f"{before[self.work]:.2f}" if self.work in before else "–"
        goal = f"{now.get(self.peer, 0.0) + self.beyond:.2f}" if self.beyond else "–"
        return f"| {self.title} | {old} | {now[self.work]:.2f} | {goal} | {self.bound} |"


ROWS = [
    Row("`import mlflow`", "import"),
    Row("the same and one request, which imports MLflow's store", "store"),
    Row("the same and `import torch`", "torch"),
    Row("MLflow's `load_model` of a scikit-learn model", "load"),
    Row("MLflow reads 100 runs of 500 batches", "read"),
    Row("a script that logs one metric", "own"),
    Row("`monitor run`, 1,000 rows", "run", "store", 0.5, "`load_model`"),
    Row("the same with `--predicted`", "run given", "store", 0.5, "MLflow, scikit-learn"),
    Row(
        f"`monitor init`, {REFERENCE_ROWS:,} rows",
        "init",
        beyond=8.0,
        bound="`load_model`, torch, three networks of 200 epochs",
    ),
    Row("the same with `--predicted`", "init given", beyond=8.0, bound="torch, the networks"),
    *(
        Row(
            f"`monitor status`, {versions} versions x {batches} batches",
            work,
            "store",
            2.0,
            "MLflow's reading",
        )
        for work, (versions, batches) in STORES.items()
    ),
    Row(
        "a seed of `trueup-seeds` beyond its own script",
        "seed",
        beyond=1.0,
        bound="below zero is noise: both sides import MLflow",
    ),
]


@dataclass(frozen=True)
class Work:
    """A command, its folder with the store, and the file that each run of it has for itself."""

    command: tuple[str, ...]
    folder: Path
    batches: Iterator[str] | None = None

    def seconds(self, checkout: Path) -> float:
        """Return the processor time of the command and of what it starts, with a checkout."""
        paths = os.pathsep.join(str(checkout / folder) for folder in ("src", "plugins"))
        store = f"sqlite:///{self.folder}/mlflow.db"
        own = {"PYTHONPATH": paths, "MLFLOW_TRACKING_URI": store, "OMP_NUM_THREADS": "1"}
        batch = ("--batch", next(self.batches)) if self.batches else ()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*self.command, *batch],
            cwd=self.folder,
            env={**os.environ, **own},
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def works(root: Path) -> dict[str, Work]:
    """Fill the stores and return what is measured on them."""
    import mlflow
    from monitor_scale import fill, prepare

    def use(name: str) -> Path:
        folder = root / name
        folder.mkdir()
        os.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        return folder

    for name, (versions, batches) in STORES.items():
        use(name)
        fill(versions, batches)
    project = use("project")
    (project / "train.py").write_text(TRAIN)
    (project / "MLproject").write_text(PROJECT)
    monitored = use("monitored")
    prepare(monitored, 1_000, 5, 2_000)
    write_tables(monitored)
    monitor = (*TRUEUP, "monitor")
    init = (*monitor, "init", MODEL, "--target", "y", "--reference", "reference.parquet")
    given, python = ("--predicted", "p"), (sys.executable, "-c")
    load = f"mlflow.pyfunc.load_model('{MODEL}')"
    found = {
        "import": Work((*python, "import mlflow"), monitored),
        "store": Work((*python, STORE), monitored),
        "torch": Work((*python, f"{STORE}; import torch"), monitored),
        "load": Work((*python, f"import mlflow; {load}"), monitored),
        "read": Work((*python, f"{STORE}; {READ}"), root / "most"),
        "run": Work((*monitor, "run", MODEL), monitored, new_batches(monitored)),
        "run given": Work((*monitor, "run", MODEL, *given), monitored, new_batches(monitored)),
        "init": Work(init, monitored),
        "init given": Work((*init, *given), monitored),
        "own": Work((sys.executable, "train.py"), project),
    }
    found |= {name: Work((*monitor, "status"), root / name) for name in STORES}
    seeds = (sys.executable, "-m", "mlflow", "run", ".", "--env-manager", "local")
    seeds += ("--backend", "trueup-seeds", "--backend-config")
    return found | {
        f"{n} seeds": Work((*seeds, json.dumps({"seeds": n})), project) for n in (1, SEEDS)
    }


def write_tables(folder: Path) -> None:
    from monitor_scale import table

    reference = table(REFERENCE_ROWS, 5, 1)
    reference.assign(p=reference["x0"]).to_parquet(folder / "reference.parquet")


_BATCHES = count(100)


def new_batches(folder: Path) -> Iterator[str]:
    """Yield files of batches that were never there, with their predictions."""
    from monitor_scale import table

    for seed in _BATCHES:
        rows = table(1_000, 5, seed).drop(columns="y")
        rows.assign(p=rows["x0"]).to_parquet(folder / f"{seed}.parquet")
        yield f"{seed}.parquet"


def measured(checkouts: list[Path]) -> list[dict[str, float]]:
    """Return the seconds of each work with each checkout, which take turns."""
    found: list[dict[str, float]] = [{} for _ in checkouts]
    with tempfile.TemporaryDirectory() as folder:
        for name, work in works(Path(folder)).items():
            for _ in range(RUNS):
                for times, checkout in zip(found, checkouts, strict=True):
                    times[name] = min(times.get(name, float("inf")), work.seconds(checkout))
            print(name, *(f"{times[name]:.2f}" for times in found), flush=True)
        os.chdir(HERE.parent)
    for times in found:
        several = times.pop(f"{SEEDS} seeds") - times.pop("1 seeds")
        times["seed"] = several / (SEEDS - 1) - times["own"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout")
    before = parser.parse_args().before
    load = os.getloadavg()[0]
    now, *others = measured([HERE.parents[1], *([before.resolve()] if before else [])])
    old = others[0] if others else {}
    lines = ["| what | before, s | now, s | goal, s | bound |", "|---|---|---|---|---|"]
    lines += [row.line(now, old) for row in ROWS]
    table = "\n".join(lines)
    put_section(
        SECTION,
        "`python benchmarks/waits_stores.py --before FOLDER`\n\n"
        "Processor time of a command with all that it starts, the smaller of two runs, in turn\n"
        f"with the checkout before; SQLite; load {load:.0f} at the start. The first six rows are\n"
        "peers: what the others cannot do without. A command is faster than its peers together\n"
        "where it looks for garbage among new objects only, which they do among all.\n\n"
        f"{table}\n",
    )


if __name__ == "__main__":
    main()
