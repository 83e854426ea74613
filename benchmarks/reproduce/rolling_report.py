"""The Markdown of the rolling tables: the paper's numbers, ours, and their errors."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from rolling_data import Series
from rolling_reading import READING
from rolling_tables import TABLES, Pair, Results

import trueup
from trueup.comparison import Proportion, metric_accuracy, paired_win_rate, variance_reduction
from trueup.decide.win_rate import share_of_pairs

FloatArray = NDArray[np.float64]
Scores = dict[str, FloatArray]

METRICS = ("vanilla", "rolling", "within")
REPLICATES = 400
FEWEST_SEEDS = 10
"""With fewer seeds no interval of a standard deviation is printed."""
TITLES = {"bikes": "Rentals of bikes", "flights": "Flight delays", "minute bars": "Minute bars"}

HEAD = """# The rolling tables: 7 and 20 to 23

Written by `python benchmarks/reproduce/rolling.py --data FOLDER`. An LSTM is trained on the first
months and goes on with the months that have come in since, every month or every six (the paper's
choice). *Vanilla* is the mean squared error, *rolling* the same after the bias of the previous
month was added (`Rolling("month")`, the paper's CQL), both on the same rows: all validation months
but the first, which has no month before it. *Within month* fits the bias by `CrossFit` inside each
month: **it looks ahead** and can't be had while the month runs; it shows what `Rolling` gives up.

Of each pair that the paper compares, the pipeline of the lower mean vanilla metric over all seeds
is named first and called the better one, as in the paper; z is that difference over its standard
error, and below 2 the order is not known. Accuracy is Eq. 8 over all pairs of seeds. Square
brackets are 95% intervals of `trueup.comparison`, ± is a standard error from {replicates} bootstrap
samples of the seeds, drawn jointly for both metrics and all pipelines; the validation rows are
fixed. The unit of the errors is the variance of the target before the first validation month.
"""


def report(results: Results, data: dict[str, Series], tables: Sequence[str], cpu: float) -> str:
    groups = [_group(results, name, arm, tables) for name, arm in results.groups()]
    return "\n".join(
        [
            HEAD.format(replicates=REPLICATES),
            *_data_lines(results, data, cpu),
            "\n## Summary\n",
            *_summary(results, tables),
            READING,
            *groups,
        ]
    )


def _data_lines(results: Results, data: dict[str, Series], cpu: float) -> Iterator[str]:
    for name, series in data.items():
        n_train = int((series.times < series.first).sum())
        months = len(np.unique(series.months[n_train:]))
        yield (
            f"- {TITLES[name]}: {n_train:,} rows before {series.first}, {len(series) - n_train:,} "
            f"in {months} validation months; windows of {series.x.shape[1]} steps, "
            f"{series.x.shape[2]} features."
        )
    yield (
        f"- {results.n_seeds} seeds for each pipeline, the same in all (paired). {cpu / 60:.0f} "
        f"minutes of one core ({platform.machine()}) in all. trueup {trueup.__version__}, torch "
        f"{torch.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, Python "
        f"{platform.python_version()}."
    )


def ordered(pair: Pair, scores: Callable[[str], Scores]) -> tuple[str, str]:
    """Return the names of a pair, that of the lower mean vanilla metric first."""
    names = (pair.first, pair.second)
    return names if scores(names[0])["vanilla"].mean() <= scores(names[1])["vanilla"].mean() else (
        names[1], names[0])  # fmt: skip


def accuracies(
    pairs: Sequence[tuple[str, str]], scores: Callable[[str], Scores], seeds: NDArray[np.intp]
) -> FloatArray:
    """Return Eq. 8 in per cent with these seeds, shape (pairs, metrics)."""
    return np.array(
        [
            [
                100.0 * share_of_pairs(scores(a)[metric][seeds], scores(b)[metric][seeds])
                for metric in METRICS
            ]
            for a, b in pairs
        ]
    )


def log_ratios(
    names: Sequence[str], scores: Callable[[str], Scores], seeds: NDArray[np.intp]
) -> FloatArray:
    """Return the mean logarithm of the sd ratio of both calibrated metrics to vanilla."""
    sds = [[np.std(scores(name)[metric][seeds]) for metric in METRICS] for name in names]
    logs = np.log(np.array(sds))
    return np.asarray((logs[:, 1:] - logs[:, :1]).mean(axis=0))


def bootstrap(n_seeds: int, statistic: Callable[[NDArray[np.intp]], FloatArray]) -> FloatArray:
    """Return the statistic of resampled seeds, shape (replicates, ...)."""
    rng = np.random.default_rng(0)
    return np.array([statistic(rng.integers(0, n_seeds, n_seeds)) for _ in range(REPLICATES)])


def _summary(results: Results, tables: Sequence[str]) -> Iterator[str]:
    yield (
        "Means over the pairs of a table. sd ratio: geometric mean over the table's pipelines of "
        "sd(calibrated) / sd(vanilla), with its 95% bootstrap interval.\n"
    )
    yield (
        "| data | retraining, learning rate | table | accuracy % vanilla | rolling | gain pp "
        "| *within month* gain pp | sd ratio rolling | *within month* |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for data, arm in results.groups():
        for chosen in [*([table] for table in tables), list(tables)]:
            if len(chosen) > 1 or len(tables) == 1 or chosen != list(tables):
                yield _summary_row(results, data, arm, chosen)


def _summary_row(results: Results, data: str, arm: str, tables: Sequence[str]) -> str:
    def scores(name: str) -> Scores:
        return results.of(data, arm, name)

    pairs = [ordered(pair, scores) for table in tables for pair in TABLES[table].pairs]
    names = [name for table in tables for name in TABLES[table].pipelines]
    everyone = np.arange(results.n_seeds)
    found = accuracies(pairs, scores, everyone).mean(axis=0)
    drawn = bootstrap(results.n_seeds, lambda s: accuracies(pairs, scores, s).mean(axis=0))
    error = (drawn - drawn[:, :1]).std(axis=0, ddof=1)
    one = results.n_seeds == 1
    cells = [f"{found[k] - found[0]:+.1f} ± {'-' if one else f'{error[k]:.1f}'}" for k in (1, 2)]
    cells += _ratio_cells(names, scores, results.n_seeds)
    title = tables[0] if len(tables) == 1 else "**all**"
    return (
        f"| {data} | {arm} | {title} | {found[0]:.1f} | {found[1]:.1f} | "
        + " | ".join(cells)
        + " |"
    )


def _ratio_cells(names: Sequence[str], scores: Callable[[str], Scores], n_seeds: int) -> list[str]:
    if n_seeds < FEWEST_SEEDS:
        return ["too few seeds"] * 2
    ratio = np.exp(log_ratios(names, scores, np.arange(n_seeds)))
    drawn = np.exp(bootstrap(n_seeds, lambda seeds: log_ratios(names, scores, seeds)))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return [f"{ratio[k]:.2f} [{low[k]:.2f}, {high[k]:.2f}]" for k in (0, 1)]


def _group(results: Results, data: str, arm: str, tables: Sequence[str]) -> str:
    def scores(name: str) -> Scores:
        return results.of(data, arm, name)

    lines = [f"## {TITLES[data]}, trained every {arm} learning rate", ""]
    for table in tables:
        lines += [f"### {TABLES[table].title}", "", *_pair_rows(table, scores, results.n_seeds)]
        lines += ["", *_pipeline_rows(table, scores), ""]
    return "\n".join(lines)


def _pair_rows(table: str, scores: Callable[[str], Scores], n_seeds: int) -> Iterator[str]:
    yield (
        "| better, worse pipeline | z | paper % QL / CQL | vanilla % | rolling % | gain pp "
        "| *within month* % | paired: vanilla % | rolling % | order of means |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for pair in TABLES[table].pairs:
        names = ordered(pair, scores)
        yield _pair_row(pair, names, scores, n_seeds)


def _pair_row(
    pair: Pair, names: tuple[str, str], scores: Callable[[str], Scores], n_seeds: int
) -> str:
    a, b = (scores(name) for name in names)
    drawn = bootstrap(n_seeds, lambda s: accuracies([names], scores, s)[0])
    gain = 100.0 * (share_of_pairs(a["rolling"], b["rolling"]) - share_of_pairs(
        a["vanilla"], b["vanilla"]))  # fmt: skip
    error = (drawn[:, 1] - drawn[:, 0]).std(ddof=1)
    remarks = [
        "reverse of the paper's" * (names[0] != pair.first),
        "reversed by the calibration" * bool(a["rolling"].mean() > b["rolling"].mean()),
    ]
    one = n_seeds == 1
    cells = [_proportion(metric_accuracy, a[m], b[m]) for m in METRICS]
    cells.insert(2, f"{gain:+.1f} ± {'-' if one else f'{error:.1f}'}")
    cells += [_proportion(paired_win_rate, a[m], b[m]) for m in METRICS[:2]]
    z = _z(b["vanilla"] - a["vanilla"])
    return (
        f"| {names[0]}, {names[1]} | {z} | {pair.vanilla} / {pair.calibrated} | "
        + " | ".join(cell.replace("%", "") for cell in cells)
        + f" | {'; '.join(filter(None, remarks))} |"
    )


def _proportion(
    estimate: Callable[[FloatArray, FloatArray], Proportion], a: FloatArray, b: FloatArray
) -> str:
    """Return a proportion with its interval; one seed has none."""
    if len(a) > 1:
        return str(estimate(a, b))
    return f"{100.0 * share_of_pairs(a, b):.0f} -"


def _pipeline_rows(table: str, scores: Callable[[str], Scores]) -> Iterator[str]:
    yield (
        "| pipeline | mean on all rows | vanilla | rolling | *within month* | sd vanilla "
        "| sd rolling | reduction of sd: rolling | *within month* | mean of the bias (sd) |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name in TABLES[table].pipelines:
        s = scores(name)
        means = " | ".join(f"{s[metric].mean():.4f}" for metric in ("all rows", *METRICS))
        sds = " | ".join(_sd(s[metric], ".5f") for metric in METRICS[:2])
        reductions = " | ".join(_reduction(s["vanilla"], s[metric]) for metric in METRICS[1:])
        bias = f"{s['bias'].mean():+.4f} ({_sd(s['bias'], '.4f')})"
        yield f"| {name} | {means} | {sds} | {reductions} | {bias} |"


def _reduction(vanilla: FloatArray, calibrated: FloatArray) -> str:
    enough = len(vanilla) >= FEWEST_SEEDS
    return str(variance_reduction(vanilla, calibrated)) if enough else "too few seeds"


def _sd(values: FloatArray, form: str) -> str:
    """Return the standard deviation over seeds; one seed has none."""
    return f"{values.std(ddof=1):{form}}" if len(values) > 1 else "-"


def _z(difference: FloatArray) -> str:
    if len(difference) < 2:
        return "-"
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return f"{difference.mean() / error:.1f}" if error > 0.0 else "none"
