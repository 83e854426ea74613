"""What users of a store wait for: a batch and the list of models of the monitor, and seeds.

``python benchmarks/waits_stores.py`` writes the section "Waits at a store" of RESULTS.md;
``--before FOLDER`` measures another checkout in the same run. Each time is processor time of a
command with all that it starts, the smaller of two runs on a SQLite store.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path

from waits import put_section

HERE = Path(__file__).resolve()
SECTION = "## Waits at a store"
RUNS, VERSIONS, FEW, MANY, SEEDS = 2, 50, 20, 100, 5
REFERENCE_ROWS = 5_300
TRUEUP = (sys.executable, "-c", "from trueup_cli import main; main()")
TRAIN = """import mlflow
with mlflow.start_run():
    mlflow.log_metric("val_loss", 0.5)
"""
PROJECT = f"""name: p
entry_points:
  main: {{command: "{sys.executable} train.py"}}
"""


def seconds(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> float:
    """Return the processor time of a command and of what it starts."""
    found = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, **variables, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def store_of(folder: Path) -> dict[str, str]:
    folder.mkdir()
    return {"MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db"}


def measure(root: Path) -> dict[str, float]:
    """Return the seconds of each work with the packages that this process imports."""
    import mlflow
    import pandas as pd
    from monitor_scale import NAME, fill, prepare, table

    from trueup_mlflow import monitor

    found = {"import": seconds([sys.executable, "-c", "import mlflow"], root, {})}
    store = store_of(root / "batch")
    os.chdir(root / "batch")
    mlflow.set_tracking_uri(store["MLFLOW_TRACKING_URI"])
    prepare(root / "batch", 1_000, 5, 2_000)
    load = f"import mlflow; mlflow.pyfunc.load_model('models:/{NAME}/1')"
    found["load"] = seconds([sys.executable, "-c", load], root / "batch", store)
    run = [*TRUEUP, "monitor", "run", f"models:/{NAME}/1", "--batch", "batch.parquet"]
    found["run"] = seconds(run, root / "batch", store)
    if "predicted" in signature(monitor.estimate).parameters:  # a checkout before may be without
        rows = pd.read_parquet(root / "batch" / "batch.parquet")
        rows.assign(p=rows["x0"]).to_parquet(root / "batch" / "given.parquet")
        given = [*run[:-1], "given.parquet", "--predicted", "p"]
        found["predicted"] = seconds(given, root / "batch", store)
    table(REFERENCE_ROWS, 5, 1).to_parquet(root / "batch" / "reference.parquet")
    init = [*TRUEUP, "monitor", "init", f"models:/{NAME}/1", "--target", "y"]
    init += ["--reference", "reference.parquet"]
    found["init"] = seconds(init, root / "batch", store)
    for name, n_batches in (("few", FEW), ("many", MANY)):
        store = store_of(root / name)
        mlflow.set_tracking_uri(store["MLFLOW_TRACKING_URI"])
        fill(VERSIONS, n_batches)
        found[name] = seconds([*TRUEUP, "monitor", "status"], root / name, store)
    project = root / "project"
    store = store_of(project)
    (project / "train.py").write_text(TRAIN)
    (project / "MLproject").write_text(PROJECT)
    found["own"] = seconds([sys.executable, "train.py"], project, store)
    seeds = [sys.executable, "-m", "mlflow", "run", ".", "--env-manager", "local"]
    seeds += ["--backend", "trueup-seeds", "--backend-config"]
    one, all_of_them = (
        seconds([*seeds, json.dumps({"seeds": n})], project, store) for n in (1, SEEDS)
    )
    found["seed"] = (all_of_them - one) / (SEEDS - 1) - found["own"]
    return found


def in_checkout(checkout: Path) -> dict[str, float]:
    paths = [str(checkout / folder) for folder in ("src", "plugins")] + [str(HERE.parent)]
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, str(HERE), "--measure", folder],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=True,
        )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def written(now: Mapping[str, float], before: Mapping[str, float]) -> str:
    rows = [
        ("`import mlflow`, the peer of the next six", "import", "–"),
        ("MLflow's `load_model` of the model alone, a scikit-learn one", "load", "–"),
        ("`trueup monitor run`, 1,000 rows", "run", f"{now['import'] + 0.5:.2f}"),
        ("the same with `--predicted`, which loads no model", "predicted", "the same"),
        (f"`trueup monitor init`, {REFERENCE_ROWS:,} rows", "init", "8"),
        (f"`trueup monitor status`, {VERSIONS} versions x {FEW} batches", "few", "–"),
        (
            f"the same, {VERSIONS} versions x {MANY} batches",
            "many",
            f"{now['import'] + 2.0:.2f}",
        ),
        ("a script that logs one metric, the peer of the next", "own", "–"),
        ("a seed of `trueup-seeds` beyond its own script", "seed", "1"),
    ]
    lines = ["| what | before, s | now, s | goal, s |", "|---|---|---|---|"]
    for title, work, goal in rows:
        old = f"{before[work]:.2f}" if work in before else "–"
        lines.append(f"| {title} | {old} | {now[work]:.2f} | {goal} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, help="measure in this folder")
    parser.add_argument("--before", type=Path, help="another checkout")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    before = in_checkout(options.before) if options.before else {}
    put_section(
        SECTION,
        "`python benchmarks/waits_stores.py --before FOLDER`\n\n"
        "Processor time of a command with all that it starts, the smaller of two runs, SQLite.\n\n"
        f"{written(in_checkout(HERE.parents[1]), before)}\n",
    )


if __name__ == "__main__":
    main()
