"""Equal budgets of trainings: plain TPE with one or five seeds against ``SeedObjective(budget=)``.

``python benchmarks/tune_budget.py TASK`` replays the table of a task that ``tune_tables.py`` made;
``python benchmarks/tune_budget.py --report`` prints the tables of all that was replayed.
A repeat draws which seven seeds the rules may use, and has one of the draws of validation rows; the
other seeds, on the test rows, give the regret: the test loss of the chosen configuration minus that
of the best one of the whole grid. "All seen" chooses by all seven seeds and the whole grid on the
validation rows: what no rule can beat but by luck.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm
from tune_tables import COLUMNS, DRAWS, TABLES, TASKS

from trueup import Evaluation, evaluate
from trueup.errors import TrueupWarning
from trueup_optuna import SeedList, SeedObjective, finals, report_study
from trueup_optuna.shrunken_means import FINALISTS, noise_share

FloatArray = NDArray[np.float64]
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "tune_budget.csv"
KEPT = ("task", "trainings", "repeat", "arm", "chosen", "goes_by")
BUDGETS = (60, 120, 240)
SEARCH_SEEDS = 7
UNIT = 1e-3
METRICS = {"vanilla": "validation", "calibrated": "calibrated_validation"}
TESTS = {"vanilla": "test", "calibrated": "calibrated_test"}
BASELINES = {"TPE, 1 seed": 1, "TPE, 5 seeds": 5}
OURS: dict[str, Any] = {
    "budget": None,
    "budget, vanilla": "vanilla",
    "budget, calibrated": "calibrated",
}
ALL_SEEN = "all seen"
_EVALUATION = evaluate([0, 1] * 5, [0.4, 0.6] * 5)


@dataclass(frozen=True)
class Repeat:
    """One replay: the results under its own order of seeds.

    Attributes
    ----------
    values : mapping of str to array of shape (seeds, configurations)
        What the rules see of either metric, under the seeds they may use.
    regret : mapping of str to array of shape (configurations,)
        Of either metric under the other seeds, on test rows.
    """

    grid: dict[str, tuple[Any, ...]]
    values: dict[str, FloatArray]
    regret: dict[str, FloatArray]
    number: int

    def suggest(self, trial: Any) -> int:
        """Return the index of a configuration in the grid; each parameter is its place there."""
        sizes = [len(values) for values in self.grid.values()]
        places = [trial.suggest_int(name, 0, len(self.grid[name]) - 1) for name in self.grid]
        return int(np.ravel_multi_index(places, sizes))

    def evaluation(self, trial: Any, seed: int) -> Evaluation:
        """Return both metrics of a training."""
        index = self.suggest(trial)
        both = {metric: float(values[seed, index]) for metric, values in self.values.items()}
        return replace(_EVALUATION, **both)


def read_repeat(task: str, number: int) -> Repeat:
    """Return a replay of a table."""
    table = np.load(TABLES / f"{task}.npz")["values"][:, :, number % DRAWS]
    order = np.random.default_rng(number).permutation(len(table))
    seen, fresh = table[order[:SEARCH_SEEDS]], table[order[SEARCH_SEEDS:]]
    regret = {}
    for metric, column in ((name, COLUMNS.index(test)) for name, test in TESTS.items()):
        means = fresh[..., column].mean(0)
        regret[metric] = means - means[table[..., column].mean(0).argmin()]
    values = {metric: seen[..., COLUMNS.index(name)] for metric, name in METRICS.items()}
    return Repeat(TASKS[task].grid, values, regret, number)


def plain(repeat: Repeat, seeds: int, budget: int) -> int:
    """Return the choice of TPE by the vanilla loss: a new seed a trial, or always the same five."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=repeat.number))
    rng = np.random.default_rng([repeat.number, 1])
    chosen = []
    for _ in range(budget // seeds):
        trial = study.ask()
        index = repeat.suggest(trial)
        under = [rng.integers(SEARCH_SEEDS)] if seeds == 1 else list(range(seeds))
        study.tell(trial, float(repeat.values["vanilla"][under, index].mean()))
        chosen.append(index)
    return chosen[study.best_trial.number]


def budgeted(repeat: Repeat, goes_by: Any, budget: int) -> tuple[int, str]:
    """Return the choice of ``SeedObjective(budget=)`` and ``finals``, and the metric behind it."""
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=repeat.number), pruner=optuna.pruners.NopPruner()
    )
    seeds = SeedList(SEARCH_SEEDS, confirm=0)
    study.optimize(SeedObjective(repeat.evaluation, seeds=seeds, budget=budget, goes_by=goes_by))
    finals(study, repeat.evaluation)
    found = report_study(study)
    return repeat.suggest(found.best.trial), found.goes_by


def replay(task: str, budget: int, number: int, arms: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield arm, choice and the metric that it went by.

    A study that chooses vanilla has gone by vanilla from the start: that arm needs no second one.
    """
    repeat, by_itself = read_repeat(task, number), None
    for arm in arms:
        if arm in BASELINES:
            yield arm, plain(repeat, BASELINES[arm], budget), "vanilla"
        elif by_itself is not None and by_itself[1] == OURS[arm] == "vanilla":
            yield arm, *by_itself
        else:
            found = budgeted(repeat, OURS[arm], budget)
            by_itself = found if OURS[arm] is None else by_itself
            yield arm, *found


def replay_task(task: str, repeats: int, budgets: list[int], arms: list[str]) -> None:
    """Replay what is missing, and keep each choice."""
    known = read_choices().set_index(list(KEPT[:4])).index
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        for budget, number in tqdm(list(product(budgets, range(repeats))), task, disable=None):
            missing = [arm for arm in arms if (task, budget, number, arm) not in known]
            for row in replay(task, budget, number, missing):
                writer.writerow((task, budget, number, *row))
            file.flush()


def read_choices() -> pd.DataFrame:
    """Return all choices that were kept."""
    if not RESULTS.exists():
        return pd.DataFrame({name: [] for name in KEPT})
    return pd.read_csv(RESULTS, names=list(KEPT))


def regrets() -> pd.DataFrame:
    """Return the regret of each choice, and of the choice that has seen all, in thousandths."""
    rows = []
    for (task, number), choices in read_choices().groupby(["task", "repeat"]):
        repeat = read_repeat(task, number)
        best = int(repeat.values["vanilla"].mean(0).argmin())
        seen = choices.drop_duplicates("trainings").assign(arm=ALL_SEEN, chosen=best)
        for choice in pd.concat([choices, seen]).to_dict("records"):
            found = {
                name: values[choice["chosen"]] / UNIT for name, values in repeat.regret.items()
            }
            rows.append(choice | found)
    return pd.DataFrame(rows)


def report() -> str:
    """Return the tables in Markdown."""
    found = regrets()
    lines = ["Regret of the vanilla test loss:", "", *_table(found, "vanilla")]
    lines += ["", "Against the better baseline:", "", *_contrasts(found)]
    lines += ["", "Regret of the calibrated test loss:", "", *_table(found, "calibrated")]
    return "\n".join([*lines, "", *_noise(found)])


def _table(found: pd.DataFrame, metric: str) -> Iterator[str]:
    arms = [*BASELINES, *OURS, ALL_SEEN]
    yield f"| task | trainings | {' | '.join(arms)} |"
    yield "|---|---|" + "---|" * len(arms)
    for (task, trainings), place in found.groupby(["task", "trainings"]):
        cells = [_cell(place.loc[place["arm"] == arm, metric]) for arm in arms]
        yield f"| {task} | {trainings} | {' | '.join(cells)} |"


def _cell(values: pd.Series[float]) -> str:
    return f"{values.mean():.2f} ± {values.sem():.2f} ({len(values)})" if len(values) else ""


def _contrasts(found: pd.DataFrame) -> Iterator[str]:
    """Yield ratios, and the mean difference over repeats with its standard error."""
    yield "| task | trainings | better baseline | " + " | ".join(OURS) + " |"
    yield "|---|---|---|" + "---|" * len(OURS)
    against: dict[tuple[str, str], list[float]] = {}
    for (task, trainings), place in found.groupby(["task", "trainings"]):
        wide = place.pivot(index="repeat", columns="arm", values="vanilla")
        better = wide[list(BASELINES)].mean().idxmin()
        cells = []
        for arm in [arm for arm in OURS if arm in wide]:
            pairs = wide[[arm, *BASELINES]].dropna()
            less = pairs[arm] - pairs[better]
            ratio = pairs[arm].mean() / pairs[better].mean()
            cells.append(f"{ratio:.2f} ({less.mean():+.2f} ± {less.sem():.2f})")
            for baseline in BASELINES:
                ratio = pairs[arm].mean() / pairs[baseline].mean()
                against.setdefault((arm, baseline), []).append(ratio)
        yield f"| {task} | {trainings} | {better} | {' | '.join(cells)} |"
    yield ""
    for (arm, baseline), ratios in against.items():
        yield f"- {arm}: {np.mean(ratios):.2f} of {baseline} on average over {len(ratios)} places."


def _noise(found: pd.DataFrame) -> Iterator[str]:
    """Yield how much of what tells the best quarter of a grid apart is the noise of a seed."""
    noise = "seed sd / noise share, vanilla | calibrated"
    correlation = "correlation with vanilla test: vanilla, calibrated | with calibrated test"
    yield f"| task | {noise} | {correlation} | chose calibrated |"
    yield "|---|---|---|---|---|---|"
    for task, place in found.groupby("task"):
        table = np.load(TABLES / f"{task}.npz")["values"]
        cells = [_noise_cell(table[..., COLUMNS.index(name)]) for name in METRICS.values()]
        cells += [_correlations(table, name) for name in TESTS.values()]
        own = place.loc[place["arm"] == "budget", "goes_by"] == "calibrated"
        yield f"| {task} | {' | '.join(cells)} | {own.sum()} of {len(own)} |"


def _near_best(means: FloatArray) -> FloatArray:
    return np.argsort(means)[: int(np.ceil(FINALISTS * len(means)))]


def _noise_cell(values: FloatArray) -> str:
    """Return standard deviation and noise share of results, shape (seeds, points, draws)."""
    noises, shares = [], []
    for of_draw in np.moveaxis(values, -1, 0):
        means = of_draw.mean(0)
        noises.append(float(of_draw[:, _near_best(means)].var(0, ddof=1).mean()))
        shares.append(noise_share(means, noises[-1]))
    return f"{np.sqrt(np.mean(noises)) / UNIT:.2f} / {np.mean(shares):.2f}"


def _correlations(table: FloatArray, test: str) -> str:
    """Return how one seed's results correlate with the test loss under the other seeds."""
    cells = []
    for metric in METRICS.values():
        found = []
        for draw, seed in product(range(DRAWS), range(len(table))):
            of_draw = table[:, :, draw]
            best = _near_best(of_draw[..., COLUMNS.index("validation")].mean(0))
            others = np.delete(of_draw[:, best, COLUMNS.index(test)], seed, axis=0).mean(0)
            own = of_draw[seed, best, COLUMNS.index(metric)]
            found.append(np.corrcoef(own, others)[0, 1])
        cells.append(f"{np.mean(found):.2f}")
    return ", ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", choices=TASKS, nargs="?")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--trainings", type=int, nargs="+", default=list(BUDGETS))
    parser.add_argument("--arms", nargs="+", choices=[*BASELINES, *OURS])
    parser.add_argument("--report", action="store_true", help="Print the tables.")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", TrueupWarning)
    if arguments.task:
        arms = arguments.arms or [*BASELINES, *OURS]
        replay_task(arguments.task, arguments.repeats, arguments.trainings, arms)
    if arguments.report:
        print(report())


if __name__ == "__main__":
    main()
