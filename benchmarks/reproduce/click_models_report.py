"""Markdown of the click tables: the paper's numbers, ours, their errors, seeds, time, versions."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import torch
from click_models_compare import Duel, Results, duel, mean_gain_interval
from click_models_data import ClickData
from click_models_tables import Moments, Pair, Table
from click_models_training import Schedule, Scores
from numpy.typing import NDArray

from trueup.comparison import Proportion, Reduction, order_note, variance_reduction

RATE = {"constant": "constant", "decay": "to zero"}
READING = """\
- *rate*: the learning rate is constant to the last step, or decays linearly to zero.
- A is the pipeline with the lower mean of our vanilla log loss; † where the paper has the other
  order. The share of models of A that beat one of B is over all pairs of seeds (Eq. 8), in percent
  with its 95% interval; *paired*: over models that share a seed, hence the order of the data.
- *vanilla* scores all validation rows. *HoldOut* is the papers' split: the bias is fitted on
  {bias:.0%} of the rows and the others are scored; *vanilla, same rows* scores these others.
  *CrossFit* calibrates over five folds and scores all rows.
- *gain* is CrossFit minus vanilla in percentage points, with a bootstrap interval over seeds.
- B - A is the difference of the mean log losses in 1e-4, ± its standard error over paired seeds;
  the verdict is `compare`'s at 95%: A, B, or ? for inconclusive.
- Reduction is 1 - sd(calibrated) / sd(vanilla) over seeds with its 95% interval: of HoldOut against
  vanilla on the same rows, and of CrossFit against vanilla. The bias cost is vanilla - CrossFit.
  Standard deviations are in 1e-4, but for that of the bias, which is a logit.
"""
ACCURACY_HEAD = (
    "rate | A | B | paper LL / CLL | vanilla | vanilla, same rows | HoldOut | CrossFit | gain"
    " | paired vanilla | paired CrossFit | B - A vanilla | B - A CrossFit | verdicts"
)
MOMENTS_HEAD = (
    "rate | pipeline | paper mean LL / CLL | paper sd LL / CLL | mean vanilla | mean CrossFit"
    " | sd vanilla | sd vanilla, same rows | sd HoldOut | sd CrossFit | reduction HoldOut"
    " | reduction CrossFit | sd of the bias | sd of the bias cost"
)
PAIRS_HEAD = (
    "rate | pairs | paper LL / CLL | vanilla | vanilla, same rows | HoldOut | CrossFit"
    " | paired vanilla | paired CrossFit | mean gain | gains with an interval above / below 0"
    " | order turns | verdicts vanilla / CrossFit"
)
PIPELINES_HEAD = (
    "rate | pipelines | sd vanilla | sd CrossFit | sd of the bias cost | reduction HoldOut"
    " | reduction CrossFit | reductions CrossFit with an interval above / below 0"
)


def write_report(
    path: Path,
    data: ClickData,
    tables: Sequence[Table],
    results: Mapping[Schedule, Results],
    command: str,
    setting: str,
) -> None:
    """Write the Markdown to ``path`` and the scores of all seeds to a Parquet file beside it."""
    parts = [
        head(data, results, command, setting),
        READING.format(bias=data.bias_fraction),
        "## Summary\n\nMean accuracies of all distinct pairs, in percent:\n",
        markdown(PAIRS_HEAD, (pairs_row(rate, tables, results[rate]) for rate in results)),
        "\nMedians over the distinct pipelines:\n",
        markdown(PIPELINES_HEAD, (pipelines_row(rate, results[rate]) for rate in results)),
        *(section(table, results) for table in tables),
    ]
    path.write_text("\n".join(parts).rstrip() + "\n")
    seed_scores(results).to_parquet(path.with_suffix(".parquet"), compression="zstd", index=False)


def head(data: ClickData, results: Mapping[Schedule, Results], command: str, setting: str) -> str:
    """Return the title and what the numbers were made with."""
    every = (scores for by_name in results.values() for scores in by_name.values())
    runs = list({scores.vanilla.tobytes(): scores for scores in every}.values())
    seconds = sum(float(scores.cpu_seconds.sum()) for scores in runs)
    seeds = " or ".join(str(n) for n in sorted({len(scores.vanilla) for scores in runs}))
    n_levels = int((data.codes.max(axis=0) + 1).sum())
    rows = (
        f"Written by `python benchmarks/reproduce/click_models.py --data {command}`: "
        f"{data.n_train:,} rows of training, {len(data.y) - data.n_train:,} of validation, "
        f"{data.y.mean():.1%} positive; {data.codes.shape[1]} fields with {n_levels:,} levels and "
        f"{data.numbers.shape[1]} numbers. One epoch; {seeds} seeds a pipeline, which draw the "
        f"weights and the order of the data. {setting}"
    )
    made_with = (
        f"{sum(len(scores.vanilla) for scores in runs):,} models took {seconds / 60:.0f} minutes "
        f"of one core ({platform.machine()}). Python {platform.python_version()}, torch "
        f"{torch.__version__}, numpy {np.__version__}, scipy {scipy.__version__}."
    )
    paragraphs = (textwrap.fill(text, 110, break_on_hyphens=False) for text in (rows, made_with))
    return "\n\n".join([f"# Click models on {data.name}", *paragraphs, ""])


def section(table: Table, results: Mapping[Schedule, Results]) -> str:
    """Return one table of accuracies and the moments of its pipelines."""
    number = f"Table {table.key}: " if table.key else ""
    printed = f", Table {table.moments_key}" if table.moments_key else ""
    parts = [f"\n## {number}{table.title}\n", f"{table.note}\n" if table.note else ""]
    pairs = [(rate, pair) for pair in table.pairs for rate in results]
    parts.append(
        markdown(ACCURACY_HEAD, (accuracy_row(rate, pair, results[rate]) for rate, pair in pairs))
    )
    parts.append(f"\nMeans and standard deviations{printed}:\n")
    names = [(rate, name) for name in table.pipelines() for rate in results]
    parts.append(
        markdown(
            MOMENTS_HEAD,
            (moments_row(rate, n, table.moments.get(n), results[rate][n]) for rate, n in names),
        )
    )
    return "\n".join(part for part in parts if part)


def accuracy_row(rate: Schedule, pair: Pair, results: Results) -> list[str]:
    """Return the cells of one pair of pipelines."""
    found = duel(pair, results)
    note = order_note(found.decision_vanilla, found.decision_crossfit)
    return [
        RATE[rate],
        found.a + " †" * found.reversed,
        found.b,
        "" if pair.vanilla is None else f"{pair.vanilla:.1f} / {pair.calibrated:.1f}",
        *(percent(x) for x in (found.vanilla, found.vanilla_on_holdout)),
        *(percent(x) for x in (found.holdout, found.crossfit)),
        gain(found),
        percent(found.paired_vanilla),
        percent(found.paired_crossfit),
        difference(found.decision_vanilla.differences),
        difference(found.decision_crossfit.differences) + " (order turns)" * bool(note),
        " / ".join(verdicts(found)),
    ]


def moments_row(rate: Schedule, name: str, printed: Moments | None, scores: Scores) -> list[str]:
    """Return the cells of one pipeline."""
    same_rows, crossfit = reductions(scores)
    columns = (scores.vanilla, scores.vanilla_on_holdout, scores.holdout, scores.crossfit)
    paper_means = f"{printed.vanilla:.5f} / {printed.calibrated:.5f}" if printed else ""
    paper_sds = f"{printed.vanilla_sd:.1f} / {printed.calibrated_sd:.1f}" if printed else ""
    return [
        RATE[rate],
        name,
        paper_means,
        paper_sds,
        mean(scores.vanilla),
        mean(scores.crossfit),
        *(f"{1e4 * values.std(ddof=1):.1f}" for values in columns),
        str(same_rows),
        str(crossfit),
        f"{scores.bias_term.std(ddof=1):.3f}",
        f"{1e4 * bias_cost_sd(scores):.1f}",
    ]


def pairs_row(rate: Schedule, tables: Iterable[Table], results: Results) -> list[str]:
    """Return the cells that average and count over all distinct pairs."""
    pairs = {
        frozenset(results[name].vanilla.tobytes() for name in (pair.a, pair.b)): pair
        for table in tables
        for pair in table.pairs
    }
    duels = [duel(pair, results) for pair in pairs.values()]
    low, high = mean_gain_interval(duels, results)
    turned = sum(bool(order_note(d.decision_vanilla, d.decision_crossfit)) for d in duels)
    given = [sum(verdicts(d)[metric] != "?" for d in duels) for metric in (0, 1)]
    metrics = ("vanilla", "vanilla_on_holdout", "holdout", "crossfit")
    return [
        RATE[rate],
        str(len(duels)),
        printed_means(pairs.values()),
        *(
            f"{100 * np.mean([getattr(d, metric).value for d in duels]):.1f}"
            for metric in (*metrics, "paired_vanilla", "paired_crossfit")
        ),
        f"{100 * np.mean([d.gain for d in duels]):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
        f"{sum(d.gain_low > 0 for d in duels)} / {sum(d.gain_high < 0 for d in duels)}",
        str(turned),
        f"{given[0]} / {given[1]}",
    ]


def printed_means(pairs: Iterable[Pair]) -> str:
    """Return the mean of the papers' accuracies, of either metric."""
    printed = [(p.vanilla, p.calibrated) for p in pairs if p.vanilla is not None]
    return "" if not printed else "{:.1f} / {:.1f}".format(*np.mean(printed, axis=0))


def pipelines_row(rate: Schedule, results: Results) -> list[str]:
    """Return the medians over all distinct pipelines."""
    scores = list({one.vanilla.tobytes(): one for one in results.values()}.values())
    found = [reductions(one) for one in scores]
    deviations = [
        (one.vanilla.std(ddof=1), one.crossfit.std(ddof=1), bias_cost_sd(one)) for one in scores
    ]
    medians = np.median([[r.value for r in pair] for pair in found], axis=0)
    return [
        RATE[rate],
        str(len(scores)),
        *(f"{value:.1f}" for value in 1e4 * np.median(deviations, axis=0)),
        *(f"{value:+.0%}" for value in medians),
        f"{sum(c.low > 0 for _, c in found)} / {sum(c.high < 0 for _, c in found)}",
    ]


def bias_cost_sd(scores: Scores) -> float:
    """Return the standard deviation over seeds of vanilla minus crossfit."""
    return float((scores.vanilla - scores.crossfit).std(ddof=1))


def reductions(scores: Scores) -> tuple[Reduction, Reduction]:
    """Return the reductions of HoldOut, on its own rows, and of CrossFit."""
    return (
        variance_reduction(scores.vanilla_on_holdout, scores.holdout),
        variance_reduction(scores.vanilla, scores.crossfit),
    )


def seed_scores(results: Mapping[Schedule, Results]) -> pd.DataFrame:
    """Return one row per trained model."""
    frames = [
        pd.DataFrame({"pipeline": name, "rate": rate, "seed": range(len(scores.vanilla))}).assign(
            **vars(scores)
        )
        for rate, by_name in results.items()
        for name, scores in by_name.items()
    ]
    return pd.concat(frames, ignore_index=True)


def verdicts(found: Duel) -> tuple[str, str]:
    """Return A, B or ? for either metric."""
    letter = {"candidate": "A", "baseline": "B", "inconclusive": "?"}
    return letter[found.decision_vanilla.verdict], letter[found.decision_crossfit.verdict]


def percent(share: Proportion) -> str:
    return f"{100 * share.value:.1f} [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def gain(found: Duel) -> str:
    return f"{100 * found.gain:+.1f} [{100 * found.gain_low:+.0f}, {100 * found.gain_high:+.0f}]"


def difference(a_minus_b: NDArray[np.float64]) -> str:
    error = a_minus_b.std(ddof=1) / np.sqrt(len(a_minus_b))
    return f"{-1e4 * a_minus_b.mean():+.1f} ± {1e4 * error:.1f}"


def mean(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.5f} ± {values.std(ddof=1) / np.sqrt(len(values)):.5f}"


def markdown(header: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; ``header`` holds the titles with bars between them."""
    rule = "|" + "---|" * (header.count("|") + 1)
    return "\n".join([f"| {header} |", rule, *("| " + " | ".join(row) + " |" for row in rows)])
