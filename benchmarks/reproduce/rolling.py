"""Tables 7 and 20 to 23 of the calibrated-metric paper: the rolling strategy of Section 5.5.

``python benchmarks/reproduce/rolling.py --data FOLDER`` trains LSTMs on hourly rentals of bikes and
on daily flight delays and writes ``rolling.md`` and ``rolling.png`` beside it. FOLDER holds
``bike_sharing_hourly/bike_hour_17379.csv.gz`` and ``nycflights13/flights_336776.parquet``. With
``--bars FOLDER --first 2015-01`` it reads minute bars instead, as the paper does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rolling_data import LOADERS, Series, minute_bars
from rolling_figure import draw
from rolling_model import Pipeline, rolling_predictions
from rolling_report import report
from rolling_tables import ARMS, TABLES, Key, Results, named_pipelines
from tqdm import tqdm

from trueup import CrossFit, Rolling, evaluate
from trueup.splits import Part, Split

HERE = Path(__file__).parent
BLOCK = 10
"""Seeds that are trained and stored at once."""


@dataclass(frozen=True)
class CrossFitWithinMonth(Split):
    """Each fold of a month is calibrated by the other folds of the same month.

    It looks ahead: rows of a month are calibrated by later ones. Its first month is not scored, so
    that it scores the rows that ``Rolling("month")`` scores.
    """

    folds: int = 5

    def groups(self, row_id: NDArray[np.uint64], times: NDArray[Any] | None) -> NDArray[np.intp]:
        month = Rolling("month").groups(row_id, times)
        return month * self.folds + CrossFit(self.folds).groups(row_id, None)

    def parts(self, n_groups: int) -> Iterator[Part]:
        for group in range(self.folds, n_groups):
            start = group - group % self.folds
            month = range(start, min(start + self.folds, n_groups))
            yield Part(group, tuple(other for other in month if other != group))


def scores(series: Series, pipeline: Pipeline, seed: int) -> dict[str, float]:
    """Train under one seed and return its metrics on the validation months."""
    validation = series.months >= series.first
    predictions = rolling_predictions(series, pipeline, seed)
    y, times = series.y[validation].astype(np.float64), series.times[validation]
    rolling, within = (
        evaluate(y, predictions, loss="mean_squared_error", split=split, times=times)
        for split in (Rolling("month"), CrossFitWithinMonth())
    )
    return {
        "all rows": rolling.vanilla,
        "vanilla": rolling.vanilla_on_scored_rows,
        "rolling": rolling.calibrated,
        "within": within.calibrated,
        "bias": rolling.bias_term,
    }


def read_raw(path: Path) -> dict[str, list[dict[str, float]]]:
    """Return the scores of each finished block, by its key."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["block"]: line["scores"] for line in lines}


def block_key(data: str, pipeline: Pipeline, first_seed: int) -> str:
    return json.dumps([data, asdict(pipeline), first_seed])


def wanted(data: Iterable[str], tables: list[str], arms: list[str]) -> dict[Key, Pipeline]:
    """Return the pipelines to train; those of equal settings are trained once."""
    return {
        Key(name, arm, pipeline): replace(settings, **vars(ARMS[arm]))
        for arm in arms
        for name in data
        for pipeline, settings in named_pipelines(tables).items()
    }


def train(data: dict[str, Series], pipelines: dict[Key, Pipeline], n_seeds: int, raw: Path) -> None:
    """Train what is missing in ``raw``."""
    raw.parent.mkdir(parents=True, exist_ok=True)
    known = read_raw(raw)
    blocks = {
        block_key(key.data, pipeline, first): (key.data, pipeline, first)
        for key, pipeline in pipelines.items()
        for first in range(0, n_seeds, BLOCK)
    }
    for block in tqdm([block for block in blocks if block not in known], disable=None):
        name, pipeline, first = blocks[block]
        started = time.process_time()
        seeds = range(first, min(first + BLOCK, n_seeds))
        found = [scores(data[name], pipeline, seed) for seed in seeds]
        line = {"block": block, "scores": found, "cpu": time.process_time() - started}
        with raw.open("a") as file:
            file.write(json.dumps(line) + "\n")


def collect(pipelines: dict[Key, Pipeline], n_seeds: int, raw: Path) -> Results:
    """Return the metrics by seed of the data sets and arms that are finished."""
    known = read_raw(raw)
    keys = {
        key: [block_key(key.data, pipeline, first) for first in range(0, n_seeds, BLOCK)]
        for key, pipeline in pipelines.items()
    }
    unfinished = {key[:2] for key, blocks in keys.items() if not set(blocks) <= set(known)}
    by_key = {}
    for key, blocks in keys.items():
        if key[:2] not in unfinished:
            rows = [row for block in blocks for row in known[block]][:n_seeds]
            by_key[key] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Results(by_key)


def cpu_seconds(raw: Path) -> float:
    return sum(float(json.loads(line)["cpu"]) for line in raw.read_text().splitlines())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder of the public data sets.")
    parser.add_argument("--bars", type=Path, help="Folder of minute bars, one CSV an instrument.")
    parser.add_argument("--first", default="2015-01", help="First validation month of the bars.")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=ARMS)
    parser.add_argument(
        "--raw", type=Path, default=Path("build") / "rolling.jsonl", help="A rerun goes on."
    )
    parser.add_argument("--report-only", action="store_true", help="Report what is finished.")
    parser.add_argument("--out", type=Path, default=HERE / "rolling.md")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if chosen.bars is not None:
        data = {"minute bars": minute_bars(chosen.bars, first=chosen.first)}
    elif chosen.data is not None:
        data = {name: load(chosen.data) for name, load in LOADERS.items()}
    else:
        parser.error("give --data or --bars")
    pipelines = wanted(data, chosen.tables, chosen.arms)
    if not chosen.report_only:
        train(data, pipelines, chosen.seeds, chosen.raw)
    results = collect(pipelines, chosen.seeds, chosen.raw)
    if not results.by_key:
        parser.error("no data set and arm is finished; train without --report-only")
    chosen.out.write_text(report(results, data, chosen.tables, cpu_seconds(chosen.raw)))
    if chosen.seeds > 1:
        draw(results, chosen.tables, chosen.out.with_suffix(".png"))
    else:
        print("one seed has no standard deviation, so no figure is drawn")


if __name__ == "__main__":
    main()
