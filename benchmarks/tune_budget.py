"""Equal budgets of trainings: plain TPE with one or five seeds against ``SeedObjective(budget=)``.

``python benchmarks/tune_budget.py TASK`` replays the table of a task that ``tune_tables.py`` made;
``python benchmarks/tune_budget.py --report`` prints the tables of all that was replayed.
A repeat draws which seven seeds the rules may use; the others, on the test rows, give the regret:
the vanilla test loss of the chosen configuration minus that of the best one of the whole grid.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from tqdm import tqdm
from tune_tables import COLUMNS, TABLES, TASKS

from trueup.errors import TrueupWarning
from trueup_optuna import SeedList, SeedObjective, finals, select_best
from trueup_optuna.shrunken_means import FINALISTS, noise_share

FloatArray = NDArray[np.float64]
Done = tuple[str, str, int, int]
"""Task, arm, trainings, repeat."""
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "tune_budget.csv"
BUDGETS = (60, 120, 240)
SEARCH_SEEDS = 7
UNIT = 1e-3
METRICS = {"vanilla": "validation", "calibrated": "calibrated_validation"}
BASELINES = ("TPE, 1 seed", "TPE, 5 seeds")


@dataclass(frozen=True)
class Repeat:
    """One replay: the results under its own order of seeds.

    Attributes
    ----------
    values : array of shape (seeds, configurations)
        What the rule sees, under the seeds it may use.
    truth : array of shape (configurations,)
        Regret under the other seeds, on test rows.
    """

    grid: dict[str, tuple[Any, ...]]
    values: FloatArray
    truth: FloatArray
    number: int

    def suggest(self, trial: Any) -> int:
        """Return the index of a configuration in the grid; each parameter is its place there."""
        sizes = [len(values) for values in self.grid.values()]
        places = [trial.suggest_int(name, 0, len(self.grid[name]) - 1) for name in self.grid]
        return int(np.ravel_multi_index(places, sizes))


def read_repeat(task: str, metric: str, number: int) -> Repeat:
    """Return a replay of a table; both metrics see the same seeds."""
    table = np.load(TABLES / f"{task}.npz")["values"]
    order = np.random.default_rng(number).permutation(len(table))
    test = table[..., COLUMNS.index("test")]
    fresh = test[order[SEARCH_SEEDS:]].mean(0)
    seen = table[order[:SEARCH_SEEDS]][..., COLUMNS.index(METRICS[metric])]
    return Repeat(TASKS[task].grid, seen, fresh - fresh[test.mean(0).argmin()], number)


def plain(repeat: Repeat, seeds: int, budget: int) -> float:
    """Return the regret of TPE: a new seed a trial, or always the same five."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=repeat.number))
    rng = np.random.default_rng([repeat.number, 1])
    chosen = []
    for _ in range(budget // seeds):
        trial = study.ask()
        index = repeat.suggest(trial)
        under = [rng.integers(SEARCH_SEEDS)] if seeds == 1 else list(range(seeds))
        study.tell(trial, float(repeat.values[under, index].mean()))
        chosen.append(index)
    return float(repeat.truth[chosen[study.best_trial.number]])


def budgeted(repeat: Repeat, budget: int) -> float:
    """Return the regret of ``SeedObjective(budget=)`` and ``finals``."""

    def train(trial: Any, seed: int) -> float:
        index = repeat.suggest(trial)
        return float(repeat.values[seed, index])

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=repeat.number), pruner=optuna.pruners.NopPruner()
    )
    study.optimize(SeedObjective(train, seeds=SeedList(SEARCH_SEEDS, confirm=0), budget=budget))
    finals(study, train)
    return float(repeat.truth[repeat.suggest(select_best(study).trial)])


def replay(task: str, number: int, budget: int, done: set[Done]) -> Iterator[tuple[str, float]]:
    """Yield arm and regret of what is missing."""
    for arm, seeds in zip(BASELINES, (1, 5), strict=True):
        if (task, arm, budget, number) not in done:
            yield arm, plain(read_repeat(task, "vanilla", number), seeds, budget)
    for metric in METRICS:
        arm = f"budget, {metric}"
        if (task, arm, budget, number) not in done:
            yield arm, budgeted(read_repeat(task, metric, number), budget)


def replay_task(task: str, repeats: int, budgets: list[int]) -> None:
    """Replay what is missing, and keep each regret."""
    done = {
        (row["task"], row["arm"], int(row["budget"]), int(row["repeat"])) for row in read_results()
    }
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        for budget, number in tqdm(list(product(budgets, range(repeats))), task, disable=None):
            for arm, regret in replay(task, number, budget, done):
                writer.writerow((task, arm, budget, regret, number))
            file.flush()


def read_results() -> list[dict[str, str]]:
    """Return all regrets that were kept."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file, ("task", "arm", "budget", "regret", "repeat")))


def report() -> str:
    """Return the table in Markdown, and the ratios to the baselines."""
    regrets: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for row in read_results():
        key = row["task"], int(row["budget"]), row["arm"]
        regrets[key].append(float(row["regret"]) / UNIT)
    arms = [*BASELINES, *(f"budget, {metric}" for metric in METRICS)]
    lines = [f"| task | trainings | {' | '.join(arms)} |", "|---|---|" + "---|" * len(arms)]
    for task, budget in sorted({key[:2] for key in regrets}):
        cells = [_cell(regrets[task, budget, arm]) for arm in arms]
        lines.append(f"| {task} | {budget} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_ratios(regrets), "", *_noise({key[0] for key in regrets})])


def _cell(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.2f} ± {error:.2f} ({len(values)})"


def _ratios(regrets: dict[tuple[str, int, str], list[float]]) -> Iterator[str]:
    mean: Callable[..., float] = lambda *key: float(np.mean(regrets[key]))  # noqa: E731
    places = sorted({key[:2] for key in regrets})
    yield "| task | trainings | vanilla / better baseline | calibrated / better baseline |"
    yield "|---|---|---|---|"
    for place in places:
        better = min(mean(*place, arm) for arm in BASELINES) or np.nan  # never off: no ratio
        shares = [mean(*place, f"budget, {metric}") / better for metric in METRICS]
        yield f"| {place[0]} | {place[1]} | {shares[0]:.2f} | {shares[1]:.2f} |"
    yield ""
    for metric in METRICS:
        against = [
            np.nanmean([mean(*p, f"budget, {metric}") / (mean(*p, arm) or np.nan) for p in places])
            for arm in BASELINES
        ]
        yield (
            f"- {metric}: on average {against[0]:.2f} of TPE with one seed, {against[1]:.2f} of "
            "TPE with five."
        )


def _noise(tasks: set[str]) -> Iterator[str]:
    """Yield how much of what tells the best quarter of a grid apart is the noise of a seed."""
    yield "| task | seed sd / noise share, vanilla | calibrated |"
    yield "|---|---|---|"
    for task in sorted(tasks):
        table = np.load(TABLES / f"{task}.npz")["values"]
        cells = [_noise_cell(table[..., COLUMNS.index(name)]) for name in METRICS.values()]
        yield f"| {task} | {' | '.join(cells)} |"


def _noise_cell(values: FloatArray) -> str:
    means = values.mean(0)
    best = np.argsort(means)[: int(np.ceil(FINALISTS * len(means)))]
    noise = float(values[:, best].var(0, ddof=1).mean())
    return f"{np.sqrt(noise) / UNIT:.2f} / {noise_share(means, noise):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", choices=TASKS, nargs="?")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--trainings", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--report", action="store_true", help="Print the tables.")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", TrueupWarning)
    if arguments.task:
        replay_task(arguments.task, arguments.repeats, arguments.trainings)
    if arguments.report:
        print(report())


if __name__ == "__main__":
    main()
