"""One pipeline: its seeds one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueup_mlflow.write.items import bias_cost_key, bias_term_key, calibrated_key, field_key
from trueup_ui.read.stored_run import StoredRun
from trueup_ui.view.experiment import Choice, ExperimentPage, experiment_page
from trueup_ui.view.pipelines import Pipeline, group


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
        """``K``."""
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
