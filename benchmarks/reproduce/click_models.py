"""Tables 1-6 and 12-19 of "A Calibrated Metric Approach": which of two click pipelines is better.

    python benchmarks/reproduce/click_models.py --data flights
    python benchmarks/reproduce/click_models.py --data synthetic:1
    python benchmarks/reproduce/click_models.py --data fresh
    python benchmarks/reproduce/click_models.py --data sizes
    python benchmarks/reproduce/click_models.py --data avazu --path train.csv
    python benchmarks/reproduce/click_models.py --data criteo --path train.txt

Each writes Markdown beside. ``fresh`` is DeepFM against a perceptron on synthetic data of a seed
used for nothing else, 80 seeds. Scores are kept in a folder, so that a call that was interrupted,
or one with more seeds, goes on from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import torch
from click_models_compare import Results
from click_models_data import ClickData, avazu, criteo, flights, synthetic
from click_models_pipelines import OFFICIAL, STAND_IN, pipelines
from click_models_report import write_report
from click_models_tables import (
    BY_SIZE,
    FRESH,
    SIZES,
    TABLES,
    Table,
    of_size,
)
from click_models_training import Pipeline, Schedule, Scores, join, scores_of
from tqdm import tqdm

HERE = Path(__file__).parent
CACHE = Path.home() / ".cache" / "trueup" / "click_models"
STAND_IN_ROWS = (40_000, 15_000)
FRESH_SEED, FRESH_ROWS = 20_261, (60_000, 15_000)
BLOCK = 5
SCHEDULES: tuple[Schedule, ...] = ("constant", "decay")


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    torch.set_num_threads(1)
    data = load(options.data, options.path, options.rows)
    tables = chosen_tables(options.data, options.tables)
    sizes = OFFICIAL if options.data in ("avazu", "criteo") else STAND_IN
    known = pipelines(sizes)
    results = {rate: run(options, data, tables, known, rate) for rate in options.schedules}
    target = options.out or HERE / f"click_models_{options.data.split(':')[0]}.md"
    write_report(target, data, tables, results, options.data, sizes.note)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", required=True, help="flights, synthetic:1, fresh, sizes, avazu, criteo"
    )
    parser.add_argument("--path", type=Path, help="the official file of avazu or criteo")
    parser.add_argument("--rows", type=int, nargs=2, metavar=("TRAIN", "VALIDATION"))
    parser.add_argument("--tables", nargs="+", help="numbers of tables of accuracies; default all")
    parser.add_argument("--schedules", nargs="+", choices=SCHEDULES, default=SCHEDULES)
    parser.add_argument("--seeds", type=int, help="of each pipeline; default 30 to 80")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if options.seeds is not None and options.seeds < 3:
        parser.error("--seeds must be at least 3, or there is no interval of a reduction.")
    return options


def load(name: str, path: Path | None, rows: list[int] | None) -> ClickData:
    """Return the data set of that name."""
    if name in ("avazu", "criteo"):
        if path is None:
            raise SystemExit(f"--path must name the official file of {name}.")
        read = avazu if name == "avazu" else criteo
        return read(path) if rows is None else read(path, *rows)
    if name == "fresh":
        return synthetic(FRESH_SEED, *(rows or FRESH_ROWS))
    if name in ("flights", "sizes"):
        return flights(*(rows or (STAND_IN_ROWS if name == "flights" else (SIZES[-1], 15_000))))
    kind, _, seed = name.partition(":")
    if kind != "synthetic" or not seed.isdigit():
        raise SystemExit(f"--data must be one of the names in --help; got {name}.")
    return synthetic(int(seed), *(rows or STAND_IN_ROWS))


def default_seeds(name: str, schedule: Schedule) -> int:
    """Return the papers' 60 seeds, 80 for the fresh pair, 30 where a stand-in's rate decays."""
    if name in ("avazu", "criteo"):
        return 60
    return {"fresh": 80, "sizes": 30}.get(name, 60 if schedule == "constant" else 30)


def chosen_tables(name: str, keys: Iterable[str] | None) -> list[Table]:
    """Return the tables of the data set: the papers' own on official data, else all."""
    if name in ("fresh", "sizes"):
        known = [FRESH if name == "fresh" else BY_SIZE]
        if keys is not None:
            raise SystemExit(f"--tables must be left out with {name}, which has one of its own.")
        return known
    known = [table for table in TABLES if name not in ("avazu", "criteo") or table.data == name]
    if keys is None:
        return known
    for key in keys:
        _require_table(key, name, known)
    return [table for table in known if table.key in keys]


def _require_table(key: str, name: str, known: list[Table]) -> None:
    """Say why a table can't be had: another data set, one of means, or none of these."""
    if key in [table.key for table in known]:
        return
    reason = "which is none of these"
    for table in TABLES:
        if table.key == key:
            reason = f"which is of {table.data}"
        elif table.moments_key == key:
            reason = f"which holds the means of Table {table.key}, on {table.data}"
    raise SystemExit(
        f"--tables must be of {', '.join(table.key for table in known)} with --data {name}; "
        f"got {key}, {reason}."
    )


def all_pipelines(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the names of the pipelines of all tables, each once."""
    return tuple(dict.fromkeys(name for table in tables for name in table.pipelines()))


def run(
    options: argparse.Namespace,
    data: ClickData,
    tables: list[Table],
    known: dict[str, Pipeline],
    schedule: Schedule,
) -> Results:
    """Return the scores of each pipeline, trained where they are not in the cache."""
    if options.data == "sizes":
        jobs = [(of_size(name, n), name, n) for n in SIZES for name in ("DeepFM", "MLP")]
    else:
        jobs = [(name, name, data.n_train) for name in all_pipelines(tables)]
    seeds = options.seeds or default_seeds(options.data, schedule)
    blocks = [range(first, min(first + BLOCK, seeds)) for first in range(0, seeds, BLOCK)]
    results: dict[str, Scores] = {}
    for label, name, n_train in tqdm(jobs, desc=f"{data.name}, {schedule}", disable=None):
        rows = data.with_fewer(n_train)
        where = {"cache": options.cache, "device": options.device}
        results[label] = join(list(scores_of(known[name], rows, blocks, schedule, **where)))
    return results


if __name__ == "__main__":
    main()
