"""One metric over the seeds of a pipeline, vanilla and calibrated, and what is odd about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trueup.comparison import Reduction, variance_reduction
from trueup.errors import TrueupError
from trueup_mlflow.autologging.coverage import reason_in
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.write.items import (
    COUNT_KEY,
    COVERAGE_TAG,
    SPREAD_ENDS,
    bias_cost_key,
    calibrated_key,
    is_own_key,
    skipped_tag,
)
from trueup_ui.view.pipelines import Pipeline, count_text

FEW_SEEDS = 5
"""With fewer pairs of seeds no comparison at 95% can have a finite interval."""


@dataclass(frozen=True)
class Spread:
    """Values over seeds: mean, and the sample standard deviation where there are two."""

    values: tuple[float, ...]
    mean: float
    sd: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        if not values:
            return None
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(tuple(values), float(np.mean(values)), sd)


@dataclass(frozen=True)
class PipelineSeeds:
    """One pipeline under one metric ``K``."""

    pipeline: Pipeline  # its runs
    # of the finished runs that have the metric; None where none has
    vanilla: Spread | None
    calibrated: Spread | None
    bias_cost: float | None  # mean over the runs that have it
    reduction: Reduction | None  # of the standard deviation, from three runs with both values on
    # runs at work, and runs that failed or were killed
    n_running: int
    n_failed: int
    warnings: tuple[str, ...]  # what a reader must know before he trusts the numbers

    count: str = ""  # how many runs and seeds the vanilla mean is of, for people
    same_runs: bool = True  # whether both means are of the same runs

    @property
    def n_seeds(self) -> int:
        """Finished runs that have the metric."""
        return 0 if self.vanilla is None else len(self.vanilla.values)

    @property
    def of_runs(self) -> str:
        """How many of the runs the calibrated mean is of, where that differs."""
        if self.same_runs or self.calibrated is None:
            return ""
        return f"{len(self.calibrated.values)} of {self.n_seeds} runs"

    @property
    def is_comparable(self) -> bool:
        """Whether both means are there, over the same runs."""
        return self.vanilla is not None and self.calibrated is not None and self.same_runs


def finished_values(runs: Sequence[StoredRun], key: str) -> dict[str, float]:
    """Return run id -> finite value of the finished runs."""
    return {
        run.run_id: run.metrics[key]
        for run in runs
        if run.status == "FINISHED" and math.isfinite(run.metrics.get(key, math.nan))
    }


def summarise(pipeline: Pipeline, key: str, *, others_have: bool = False) -> PipelineSeeds:
    """Return what the seeds of a pipeline say about ``K``.

    With ``others_have`` a missing calibrated value is said even where no tag tells the reason.
    """
    runs = pipeline.runs
    vanilla = finished_values(runs, key)
    calibrated = finished_values(runs, calibrated_key(key))
    cost = finished_values(runs, bias_cost_key(key))
    both = [run_id for run_id in vanilla if run_id in calibrated]
    states = Counter(run.status for run in runs)
    reduction = _reduction([vanilla[one] for one in both], [calibrated[one] for one in both])
    return PipelineSeeds(
        pipeline,
        Spread.of([*vanilla.values()]),
        Spread.of([*calibrated.values()]),
        float(np.mean([*cost.values()])) if cost else None,
        reduction,
        states["RUNNING"] + states["SCHEDULED"],
        states["FAILED"] + states["KILLED"],
        (
            *_warnings(pipeline, key, vanilla),
            *_unlike_runs(vanilla, calibrated),
            *_uncalibrated(runs, key, others_have=others_have or bool(calibrated)),
            *_noisier(reduction),
        ),
        count_text([run for run in runs if run.run_id in vanilla]),
        vanilla.keys() == calibrated.keys(),
    )


def metric_keys(runs: Sequence[StoredRun]) -> list[str]:
    """Return each ``K`` that runs have; those with a calibrated twin first.

    Keys that trueup puts beside some K, and those of summaries over seeds, are left out.
    """
    seen = Counter(key for run in runs for key in run.metrics)
    summaries = {key + end for key in seen for end in SPREAD_ENDS} | {COUNT_KEY}
    keys = [
        key
        for key in seen
        if not is_own_key(key) and key not in summaries and not key.startswith("system/")
    ]
    return sorted(keys, key=lambda key: (calibrated_key(key) not in seen, -seen[key], key))


def _reduction(vanilla: Sequence[float], calibrated: Sequence[float]) -> Reduction | None:
    if len(vanilla) < 3:
        return None
    try:
        return variance_reduction(vanilla, calibrated)
    except TrueupError:  # equal in all runs: a warning says so
        return None


def _warnings(pipeline: Pipeline, key: str, values: Mapping[str, float]) -> list[str]:
    found = []
    runs = [run for run in pipeline.runs if run.run_id in values]
    rows = {run.fingerprint(key) for run in runs} - {None}
    if len(rows) > 1:
        found.append(f"different rows: {len(rows)} sets of validation rows among the seeds")
    if len(runs) > 1 and len(set(values.values())) == 1:
        found.append("unused seed: every run has the same value, so the seed changed nothing")
    repeated = [seed for seed, n in Counter(run.seed for run in runs).items() if n > 1]
    if repeated and repeated != [None]:
        found.append(f"seed {_listed(repeated)} trained more than once")
    seeds = {run.seed for run in runs}
    n_seeds = len(runs) if None in seeds else len(seeds)
    if 0 < n_seeds < FEW_SEEDS:
        found.append(f"few seeds: {n_seeds}, and no decision is possible before {FEW_SEEDS}")
    return found


def _unlike_runs(vanilla: Mapping[str, float], calibrated: Mapping[str, float]) -> list[str]:
    if not calibrated or vanilla.keys() == calibrated.keys():
        return []
    return [
        f"different runs: the vanilla mean is of {len(vanilla)}, the calibrated one of "
        f"{len(calibrated)}, so they can't be set against each other"
    ]


def _noisier(reduction: Reduction | None) -> list[str]:
    if reduction is None or reduction.high >= 0.0:
        return []
    return [
        "few rows: calibrated varies more than vanilla, beyond chance; its bias is fitted on few, "
        "or moves with the seed. Read vanilla"
    ]


def _uncalibrated(runs: Sequence[StoredRun], key: str, *, others_have: bool) -> list[str]:
    """Return why runs have no calibrated value, from what was logged in them."""
    without = [run for run in runs if key in run.metrics and calibrated_key(key) not in run.metrics]
    unknown = "nothing in them says why; trueup doctor RUN_ID looks" if others_have else None
    reasons = Counter(_reason(run, key) or unknown for run in without)
    return [
        f"no calibrated value in {n} run{'' if n == 1 else 's'}: {reason}"
        for reason, n in reasons.items()
        if reason
    ]


def _reason(run: StoredRun, key: str) -> str | None:
    if calibrated_key(key) in run.late:
        return run.late[calibrated_key(key)]
    for tag in (skipped_tag(key), skipped_tag(calibrated_key(key))):
        if tag in run.tags:
            return run.tags[tag]
    return reason_in(run.tags.get(COVERAGE_TAG, ""), key)


def _listed(seeds: Sequence[int | str | None]) -> str:
    shown = [str(seed) for seed in seeds if seed is not None]
    return ", ".join(shown[:3]) + (" and others" if len(shown) > 3 else "")
