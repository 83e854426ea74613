"""How seeds live in trials.

Steps are seed indices and the reported value is the running mean over seeds 0 to step, which is
what samplers and other pruners can read. The results of the single seeds are user attributes
``trueup:s<k>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Literal

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

FloatArray = NDArray[np.float64]
Reports = Literal["running_mean", "value"]
Metric = Literal["calibrated", "vanilla"]

STATUS = "trueup:status"
ELIMINATED = "eliminated"
STOPPED_IN_EPOCH = "epoch"
BY = "trueup:by"
LOG_E = "trueup:log_e"
FAILED = "trueup:failed"
"""Why a seed of the trial has no result."""
REPEAT_OF = "trueup:twin_of"
"""Number of the earlier trial with the same parameters, which has the seed of this one."""
BEAT = "trueup:beat"
RETRY_OF = "trueup:retry_of"


def seed_key(index: int) -> str:
    """Return the user attribute that holds the result of the seed with this index."""
    return f"trueup:s{index}"


@dataclass(frozen=True)
class SeedRecord:
    """Result of one training."""

    value: float  # the calibrated metric, or the number that ``train`` returned
    seed: int  # the seed itself, not its index
    # the metric without calibration; None where ``train`` returned a number
    vanilla: float | None = None
    # the split and the fingerprint of the rows behind ``value``; None likewise
    split: str | None = None
    fingerprint: str | None = None

    def by(self, metric: Metric) -> float:
        """Return the result by a metric; what ``train`` returned as a number is both."""
        return self.value if metric == "calibrated" or self.vanilla is None else self.vanilla

    def to_attribute(self) -> dict[str, Any]:
        return asdict(self)


def seed_records(attributes: Mapping[str, Any]) -> tuple[SeedRecord, ...]:
    """Return the results of seeds 0, 1, ... up to the first that is missing."""
    found: list[SeedRecord] = []
    for index in count():
        attribute = attributes.get(seed_key(index))
        if attribute is None:
            return tuple(found)
        found.append(SeedRecord(**attribute))
    raise AssertionError("unreachable")


def has_seeds(study: optuna.Study) -> bool:
    """Say whether a study has kept the result of a seed."""
    return any(seed_records(trial.user_attrs) for trial in study.get_trials(deepcopy=False))


def finished_values(steps: Mapping[int, float], reports: Reports = "running_mean") -> FloatArray:
    """Return the result of seeds 0, 1, ... up to the first step that is missing or not finite.

    Examples
    --------
    >>> finished_values({0: 4.0, 1: 5.0, 3: 1.0}).tolist()
    [4.0, 6.0]
    """
    prefix: list[float] = []
    while np.isfinite(steps.get(len(prefix), np.nan)):
        prefix.append(steps[len(prefix)])
    reported = np.array(prefix, dtype=np.float64)
    if reports == "value" or not prefix:
        return reported
    return np.diff(reported * np.arange(1, len(prefix) + 1), prepend=0.0)


def root_number(trial: FrozenTrial) -> int:
    """Return the number of the first attempt at this trial's configuration."""
    number = trial.user_attrs.get(RETRY_OF, trial.system_attrs.get("failed_trial", trial.number))
    return int(number)


def configurations(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trial that stands for each configuration, in order of arrival.

    A retried trial keeps its place. A failed trial keeps its place too where it had finished a
    seed, because the race may have used it; waiting trials and those that failed before their first
    seed have none.
    """
    latest: dict[int, FrozenTrial] = {}
    for trial in trials:
        if trial.state == TrialState.WAITING:
            continue
        root = root_number(trial)
        known = latest.get(root)
        if known is None or _stands_before(trial, known):
            latest[root] = trial
    return [
        latest[root]
        for root in sorted(latest)
        if latest[root].state != TrialState.FAIL or latest[root].intermediate_values
    ]


def _stands_before(trial: FrozenTrial, known: FrozenTrial) -> bool:
    if (trial.state == TrialState.FAIL) != (known.state == TrialState.FAIL):
        return known.state == TrialState.FAIL
    return trial.number > known.number


def is_feasible(trial: FrozenTrial) -> bool:
    """Say whether a trial satisfies all constraints that it was given."""
    return all(value <= 0.0 for value in trial.constraints.values())


def value_table(rows: list[FloatArray]) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the rows as an array of shape (k, s), padded with NaN, and their lengths."""
    n_seeds = np.array([len(row) for row in rows], dtype=np.intp)
    return padded(rows, (len(rows), max(1, int(n_seeds.max(initial=0))))), n_seeds


def padded(rows: list[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """Return the rows as an array of a shape, padded with NaN."""
    table = np.full(shape, np.nan)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table
