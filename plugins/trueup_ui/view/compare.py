"""Page 2: every pair of the chosen pipelines, one pair in detail, and decisions logged before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueup.comparison import order_note
from trueup_mlflow.compare.stored_run import PARENT_TAG, StoredRun
from trueup_mlflow.write.items import COMPARISON_ROLE, calibrated_key
from trueup_ui.view.charts import Axis, Tick
from trueup_ui.view.experiment import common_decimals, mean_and_sd
from trueup_ui.view.pairs import Pair, compare_pair, paired_values, undirected
from trueup_ui.view.pipelines import Pipeline, count_text, group
from trueup_ui.view.seeds import Spread, finished_values, metric_keys

_OF_PARENT = re.compile(rf"tags\.`?{re.escape(PARENT_TAG)}`?\s*=\s*'(\w+)'")
MOST_PIPELINES = 12
"""As many stand in the matrix at once."""


@dataclass(frozen=True)
class Asked:
    """What the reader asks to compare; empty texts and tuples stand for a choice of ours."""

    metric: str = ""
    by: str = ""
    higher: bool | None = None  # whether higher values are better; None where it is not said
    chosen: tuple[str, ...] = ()
    first: str = ""
    second: str = ""


@dataclass(frozen=True)
class MeasuredPipeline:
    """A pipeline with its spread on the metric, as text too, and of how many runs it is."""

    pipeline: Pipeline
    spread: Spread
    text: str
    count: str


@dataclass(frozen=True)
class PairedLine:
    """One seed under both pipelines, in percent of the width."""

    first: float
    second: float
    better: bool
    label: str


@dataclass(frozen=True)
class PairFigure:
    """One pair in detail: lines between runs that share a seed, the interval of the difference."""

    pair: Pair
    lines: tuple[PairedLine, ...]
    first_dots: tuple[float, ...]
    second_dots: tuple[float, ...]
    ticks: tuple[Tick, ...]
    note: str


@dataclass(frozen=True)
class LoggedDecision:
    """A comparison run that somebody logged; a side is a pipeline's name or a filter of MLflow."""

    run: StoredRun
    candidate: str
    baseline: str


@dataclass(frozen=True)
class ComparePage:
    """Everything that the page shows; ``matrix[i][j]`` sets pipeline i against j."""

    asked: Asked
    metrics: tuple[str, ...]
    grouped_by: str
    shown: tuple[MeasuredPipeline, ...]
    available: tuple[MeasuredPipeline, ...]
    matrix: tuple[tuple[Pair | None, ...], ...]
    figure: PairFigure | None
    logged: tuple[LoggedDecision, ...]

    @property
    def undirected(self) -> str:
        """Why nothing is compared, where it is not known which values are better."""
        return undirected(self.asked.metric, self.asked.higher)


def compare_page(runs: Sequence[StoredRun], asked: Asked) -> ComparePage:
    """Return the page of an experiment."""
    grouping = group(runs, asked.by)
    metrics = _metrics([run for one in grouping.pipelines for run in one.runs])
    metric = asked.metric if asked.metric in metrics else (metrics[0] if metrics else "")
    available = _measured(grouping.pipelines, metric, higher=asked.higher)
    chosen = [one for one in available if one.pipeline.key in asked.chosen] or available
    shown = tuple(chosen[:MOST_PIPELINES])
    found = {
        (i, j): compare_pair(shown[i].pipeline, shown[j].pipeline, metric, higher=asked.higher)
        for i in range(len(shown))
        for j in range(len(shown))
        if i != j
    }
    first, second = _detail(shown, asked)
    return ComparePage(
        Asked(metric, asked.by, asked.higher, tuple(a.pipeline.key for a in shown), first, second),
        tuple(metrics),
        grouping.by,
        shown,
        tuple(available),
        tuple(tuple(found.get((i, j)) for j in range(len(shown))) for i in range(len(shown))),
        _figure(shown, (first, second), metric, higher=asked.higher),
        logged_decisions(runs),
    )


def logged_decisions(runs: Sequence[StoredRun]) -> tuple[LoggedDecision, ...]:
    """Return the comparisons that were logged, the latest first."""
    found = [run for run in runs if run.role == COMPARISON_ROLE]
    names = {run.run_id: run.name for run in runs}
    return tuple(
        LoggedDecision(
            run,
            _pipeline_name(run.params.get("candidate", ""), names),
            _pipeline_name(run.params.get("baseline", ""), names),
        )
        for run in reversed(found)
    )


def _pipeline_name(query: str, names: Mapping[str, str]) -> str:
    """Return the name of the parent whose children a filter finds, or the filter."""
    parent = _OF_PARENT.fullmatch(query.strip())
    return query if parent is None else names.get(parent[1], query)


def _metrics(runs: Sequence[StoredRun]) -> list[str]:
    """Return the keys that can be compared, a calibrated one before its vanilla one."""
    seen = {key for run in runs for key in run.metrics}
    return [
        name for key in metric_keys(runs) for name in (calibrated_key(key), key) if name in seen
    ]


def _measured(
    pipelines: Sequence[Pipeline], metric: str, *, higher: bool | None
) -> list[MeasuredPipeline]:
    """Return the pipelines that have the metric, the best mean first where one is better."""
    values = {one.key: finished_values(one.runs, metric) for one in pipelines}
    spreads = {key: Spread.of([*found.values()]) for key, found in values.items()}
    decimals = common_decimals(spreads.values())
    shown = [
        MeasuredPipeline(
            one,
            spread,
            mean_and_sd(spread, decimals),
            count_text([run for run in one.runs if run.run_id in values[one.key]]),
        )
        for one in pipelines
        if (spread := spreads[one.key]) is not None
    ]
    if undirected(metric, higher):
        return sorted(shown, key=lambda one: one.pipeline.name)
    return sorted(shown, key=lambda one: -one.spread.mean if higher else one.spread.mean)


def _detail(shown: Sequence[MeasuredPipeline], asked: Asked) -> tuple[str, str]:
    """Return the keys of the pair to show: the one asked for, or the two best."""
    keys = [one.pipeline.key for one in shown]
    if asked.first in keys and asked.second in keys and asked.first != asked.second:
        return asked.first, asked.second
    return (keys[0], keys[1]) if len(keys) > 1 else ("", "")


def _figure(
    shown: Sequence[MeasuredPipeline], keys: tuple[str, str], metric: str, *, higher: bool | None
) -> PairFigure | None:
    by_key = {one.pipeline.key: one for one in shown}
    if keys[0] not in by_key:
        return None
    first, second = (by_key[key] for key in keys)
    pair = compare_pair(first.pipeline, second.pipeline, metric, higher=higher)
    axis = Axis.over([*first.spread.values, *second.spread.values])
    lines = tuple(
        PairedLine(axis.at(a), axis.at(b), (a > b) if higher else (a < b), f"seed {seed}")
        for seed, a, b in paired_values(pair, metric)
    )
    return PairFigure(
        pair,
        lines,
        tuple(axis.at(value) for value in first.spread.values),
        tuple(axis.at(value) for value in second.spread.values),
        axis.ticks(6),
        _order_note(pair, metric, higher=higher),
    )


def _order_note(pair: Pair, metric: str, *, higher: bool | None) -> str:
    """Say where the vanilla metric ranks the two the other way round."""
    vanilla = metric.removeprefix(calibrated_key(""))
    if vanilla == metric or pair.comparison is None:
        return ""
    other = compare_pair(pair.first, pair.second, vanilla, higher=higher).comparison
    return "" if other is None else order_note(other, pair.comparison)


_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~&@$])")


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(escaped("a|b <img> *c*"))
    a\|b \<img\> \*c\*
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def as_markdown(page: ComparePage, address: str) -> str:
    """Return a table of the pipelines, each decision in a sentence, and a link to the page."""
    better = "" if page.undirected else f", {'higher' if page.asked.higher else 'lower'} is better"
    lines = [
        f"**{escaped(page.asked.metric)}**, mean ± sd over seeds{better}",
        "",
        "| pipeline | mean ± sd | seeds |",
        "|---|---|---|",
        *(
            f"| {escaped(one.pipeline.name)} | {one.text} | {one.count.removesuffix(' seeds')} |"
            for one in page.shown
        ),
        "",
    ]
    for i, row in enumerate(page.matrix):
        lines += [f"- {escaped(pair.sentence)}" for pair in row[i + 1 :] if pair is not None]
    return "\n".join([*lines, "", f"[trueup]({address})", ""])
