"""Page 1: the pipelines of an experiment, their seeds on one axis, and what calibration changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.items import (
    SCORING_ROLE,
    bias_cost_key,
    bias_term_key,
    calibrated_key,
    field_key,
)
from trueup_ui.view.charts import Axis, Strip, Tick, strip
from trueup_ui.view.numbers import MISSING, decimals_of, fixed, percent
from trueup_ui.view.pairs import undirected
from trueup_ui.view.pipelines import Pipeline, group, trainings
from trueup_ui.view.seeds import PipelineSeeds, Spread, metric_keys, summarise

Order = Literal["calibrated", "vanilla", "name", "seeds", "reduction"]
ORDERS: tuple[Order, ...] = get_args(Order)
MOST_ROWS = 200


@dataclass(frozen=True)
class Choice:
    """What the reader chose for the page; an unknown choice falls back to the first one."""

    metric: str = ""  # ``K``; "" for the first one
    by: str = ""  # how runs are grouped, see :func:`trueup_ui.view.pipelines.group`
    order: Order = "calibrated"  # one of ``ORDERS``
    higher: bool | None = None  # whether higher values are better; None where it is not said


@dataclass(frozen=True)
class Row:
    """One pipeline as it is shown, and the ranks that it gains on the calibrated metric."""

    seeds: PipelineSeeds
    vanilla: str
    calibrated: str
    bias_cost: str
    reduction: str
    reduction_interval: str
    resolved: bool
    rank: int | None
    vanilla_rank: int | None
    strip: Strip | None
    calibrated_strip: Strip | None

    @property
    def moved(self) -> int:
        """Ranks gained on the calibrated metric; negative for ranks lost."""
        if self.rank is None or self.vanilla_rank is None:
            return 0
        return self.vanilla_rank - self.rank


@dataclass(frozen=True)
class ExperimentPage:
    """Everything that the page shows.

    Runs either train or, ``n_scoring`` of them, score files; ``n_ranked`` pipelines have a rank on
    both metrics.
    """

    choice: Choice
    metrics: tuple[str, ...]
    grouped_by: str
    rows: tuple[Row, ...]
    n_hidden: int
    n_left_out: int
    n_runs: int
    n_stored: int
    n_scoring: int
    n_ranked: int
    ticks: tuple[Tick, ...]

    @property
    def n_moved(self) -> int:
        """Pipelines whose rank the calibration changes."""
        return sum(row.moved != 0 for row in self.rows)

    @property
    def undirected(self) -> str:
        """Why no pipeline has a rank, where it is not known which values are better."""
        return undirected(self.choice.metric, self.choice.higher)


def experiment_page(runs: Sequence[StoredRun], choice: Choice) -> ExperimentPage:
    """Return the page of an experiment."""
    grouping = group(runs, choice.by)
    trained = [run for pipeline in grouping.pipelines for run in pipeline.runs]
    metrics = metric_keys(trained)
    metric = choice.metric if choice.metric in metrics else (metrics[0] if metrics else "")
    twins = any(calibrated_key(metric) in run.metrics for run in trained)
    found = [summarise(one, metric, others_have=twins) for one in grouping.pipelines]
    choice = replace(choice, metric=metric)
    unranked = bool(undirected(metric, choice.higher))
    by_value = unranked and choice.order in ("calibrated", "vanilla")
    ordered = _ordered(found, replace(choice, order="name") if by_value else choice)
    shown = ordered[:MOST_ROWS]
    axis = Axis.over(value for one in shown for value in _all_values(one))
    ranks, vanilla_ranks = (
        ([None] * len(ordered),) * 2 if unranked else _both_ranks(ordered, bool(choice.higher))
    )
    decimals = common_decimals(one.calibrated or one.vanilla for one in shown)
    rows = tuple(
        _row(one, axis, (rank, before), decimals)
        for one, rank, before in zip(shown, ranks, vanilla_ranks, strict=False)
    )
    return ExperimentPage(
        choice,
        tuple(metrics),
        grouping.by,
        rows,
        len(ordered) - len(shown),
        grouping.n_left_out,
        len(trainings(runs)),
        len(runs),
        sum(run.role == SCORING_ROLE for run in runs),
        sum(rank is not None for rank in ranks),
        axis.ticks() if rows else (),
    )


def _all_values(seeds: PipelineSeeds) -> tuple[float, ...]:
    spreads = (seeds.vanilla, seeds.calibrated)
    return tuple(value for spread in spreads if spread is not None for value in spread.values)


def _ordered(found: Sequence[PipelineSeeds], choice: Choice) -> list[PipelineSeeds]:
    sign = -1.0 if choice.higher else 1.0

    def mean(spread: Spread | None) -> tuple[bool, float]:
        return spread is None, 0.0 if spread is None else sign * spread.mean

    def key(one: PipelineSeeds) -> tuple[object, ...]:
        first: tuple[object, ...] = mean(one.calibrated or one.vanilla)
        if choice.order == "vanilla":
            first = mean(one.vanilla)
        elif choice.order == "seeds":
            first = (-one.n_seeds,)
        elif choice.order == "reduction":
            first = (one.reduction is None, -one.reduction.value if one.reduction else 0.0)
        elif choice.order == "name":
            first = ()
        return (*first, one.pipeline.name.casefold(), one.pipeline.key)

    return sorted(found, key=key)


def _both_ranks(
    found: Sequence[PipelineSeeds], higher: bool
) -> tuple[list[int | None], list[int | None]]:
    """Return both ranks of each that can be compared; without any, the vanilla rank of all."""
    if not any(one.is_comparable for one in found):
        return [None] * len(found), _ranks([one.vanilla for one in found], higher)
    return (
        _ranks([one.calibrated if one.is_comparable else None for one in found], higher),
        _ranks([one.vanilla if one.is_comparable else None for one in found], higher),
    )


def _ranks(spreads: Sequence[Spread | None], higher: bool) -> list[int | None]:
    """Return the rank of each mean from 1, the best one; None without a mean."""
    sign = -1.0 if higher else 1.0
    means = sorted(sign * spread.mean for spread in spreads if spread is not None)
    return [None if one is None else means.index(sign * one.mean) + 1 for one in spreads]


def common_decimals(spreads: Iterable[Spread | None]) -> int | None:
    """Return the decimals that show two digits of the least spread, so that columns line up."""
    found = [decimals_of(spread.sd) for spread in spreads if spread is not None]
    return max((decimals for decimals in found if decimals is not None), default=None)


def mean_and_sd(spread: Spread | None, decimals: int | None) -> str:
    """Return the mean of a spread, and its standard deviation where there is one."""
    if spread is None:
        return MISSING
    mean = fixed(spread.mean, decimals)
    return mean if spread.sd is None else f"{mean} ± {fixed(spread.sd, decimals)}"


def _row(
    seeds: PipelineSeeds, axis: Axis, ranks: tuple[int | None, int | None], decimals: int | None
) -> Row:
    reduction = seeds.reduction
    both = seeds.calibrated is not None
    ends = "" if reduction is None else f"{percent(reduction.low)} to {percent(reduction.high)}"
    return Row(
        seeds,
        mean_and_sd(seeds.vanilla, decimals),
        mean_and_sd(seeds.calibrated, decimals),
        fixed(seeds.bias_cost, decimals, sign=True),
        MISSING if reduction is None else percent(reduction.value),
        ends,
        reduction is not None and (reduction.low > 0.0 or reduction.high < 0.0),
        *ranks,
        strip(seeds.vanilla, axis, 15.0, 43.0 if both else 85.0),
        strip(seeds.calibrated, axis, 57.0, 85.0),
    )


@dataclass(frozen=True)
class SeedLine:
    """One training."""

    run: StoredRun
    seed: str
    vanilla: float | None
    calibrated: float | None
    bias_term: float | None
    bias_cost: float | None
    has_fields: bool


@dataclass(frozen=True)
class PipelinePage:
    """A pipeline, alone on the experiment's page, and its trainings by seed."""

    pipeline: Pipeline
    summary: ExperimentPage
    lines: tuple[SeedLine, ...]

    @property
    def metric(self) -> str:
        return self.summary.choice.metric


def find_pipeline(runs: Sequence[StoredRun], by: str, key: str) -> Pipeline | None:
    """Return the pipeline that a link calls so, None where there is none any more."""
    return next((one for one in group(runs, by).pipelines if one.key == key), None)


def pipeline_page(pipeline: Pipeline, choice: Choice) -> PipelinePage:
    """Return the page of one pipeline."""
    own = [run for run in (pipeline.parent, *pipeline.runs) if run is not None]
    by = "" if pipeline.parent is not None else choice.by
    summary = experiment_page(own, Choice(choice.metric, by, higher=choice.higher))
    metric = summary.choice.metric
    lines = [_line(run, metric) for run in pipeline.runs]
    return PipelinePage(pipeline, summary, tuple(sorted(lines, key=_order)))


def _line(run: StoredRun, metric: str) -> SeedLine:
    value = run.metrics.get
    return SeedLine(
        run,
        "–" if run.seed is None else str(run.seed),
        value(metric),
        value(calibrated_key(metric)),
        value(bias_term_key(metric)),
        value(bias_cost_key(metric)),
        any(field_key("ece", "") in key for key in run.metrics),
    )


def _order(line: SeedLine) -> tuple[bool, int, str]:
    seed = line.run.seed
    return (True, 0, line.seed) if not isinstance(seed, int) else (False, seed, "")
