"""The runs of two pipelines, and what must hold before their numbers may meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trueup.decide.pairing import Seed
from trueup.errors import InvalidInputError
from trueup_mlflow.compare.seed_runs import SeedRuns
from trueup_mlflow.compare.stored_run import StoredRun


@dataclass(frozen=True)
class TwoPipelines:
    """The runs of a candidate and of a baseline."""

    candidate: SeedRuns
    baseline: SeedRuns

    def named(self) -> dict[str, SeedRuns]:
        return {"candidate": self.candidate, "baseline": self.baseline}

    def values(self, metric: str) -> tuple[dict[Seed, float], dict[Seed, float]]:
        """Return seed -> value of both pipelines, NaN for a failed seed."""
        first, second = (
            {seed: run.value(metric) for seed, run in runs.items()}
            for runs in self.named().values()
        )
        return first, second

    def check(self, metric: str, *, allow_failed: bool) -> None:
        """Raise InvalidInputError unless each has its own runs, finished, with the metric."""
        first, second = ({run.run_id for run in runs.values()} for runs in self.named().values())
        if both := first & second:
            raise InvalidInputError(
                "candidate and baseline must match different runs",
                f"run {min(both)} in both",
                "Narrow the filters.",
            )
        if late := self.late_twin(metric):
            raise InvalidInputError(
                f"{metric} must be of the step that its metric ends with",
                late,
                "Ask trueup doctor RUN_ID for the reason, or compare the vanilla metric.",
            )
        for role, runs in self.named().items():
            _check_metric(role, runs, metric)
            if not allow_failed:
                _check_finished(role, runs, metric)

    def late_twin(self, metric: str) -> str:
        """Say of which finished run the calibrated value is of an earlier step; else empty."""
        for role, runs in self.named().items():
            for seed, run in runs.items():
                if run.status == "FINISHED" and metric in run.late:
                    return f"run {run.run_id} of {role} seed {seed!r}: {run.late[metric]}"
        return ""

    def fingerprint_mismatch(
        self, metric: str, pairs: Sequence[tuple[Seed, Seed]] | None
    ) -> str | None:
        """Say where fingerprints differ: the empty text for nowhere, None where no run has one.

        Without pairs of (candidate seed, baseline seed) each run meets each.
        """
        first, second = (self._fingerprints(runs, metric) for runs in self.named().values())
        if not any(first.values()) and not any(second.values()):
            return None
        if pairs is None:
            pairs = _against_the_first(first, second)
        for a, b in pairs:
            if first[a] != second[b]:
                return f"{first[a]} at candidate seed {a!r} and {second[b]} at baseline seed {b!r}"
        return ""

    def seeds_with_own_rows(self, metric: str) -> str:
        """Say that seeds of one pipeline were scored on rows of their own; else empty."""
        for role, runs in self.named().items():
            found = [item for item in self._fingerprints(runs, metric).items() if item[1]]
            other = next((seed for seed, rows in found if rows != found[0][1]), None)
            if other is not None:
                return (
                    f"The seeds of the {role} were scored on different rows (seeds "
                    f"{found[0][0]!r} and {other!r}), so the decision is also about the rows that "
                    "were drawn. The usual cause is a split drawn from the seed: draw the "
                    "validation rows once, with a random_state that is not the seed."
                )
        return ""

    @staticmethod
    def _fingerprints(runs: SeedRuns, metric: str) -> dict[Seed, str | None]:
        return {
            seed: run.fingerprint(metric)
            for seed, run in runs.items()
            if math.isfinite(run.value(metric))
        }


def _against_the_first(
    first: dict[Seed, str | None], second: dict[Seed, str | None]
) -> list[tuple[Seed, Seed]]:
    """Pair enough runs that all fingerprints are equal exactly if those of each pair are."""
    a, b = next(iter(first)), next(iter(second))
    return [*((a, seed) for seed in second), *((seed, b) for seed in first)]


def _check_metric(role: str, runs: SeedRuns, metric: str) -> None:
    known = sorted({key for run in runs.values() for key in run.metrics})
    if metric not in known:
        raise InvalidInputError(
            f"metric must be logged by the runs of {role}", repr(metric), f"They have {known}."
        )


def _check_finished(role: str, runs: SeedRuns, metric: str) -> None:
    for seed, run in runs.items():
        if not math.isfinite(run.value(metric)):
            raise InvalidInputError(
                f"{role} must have a finished run with a finite {metric!r} for each seed",
                f"run {run.run_id} ({run.status}) at seed {seed!r}{_amiss(run, metric)}",
                "Rerun it, or pass allow_failed=True to leave the seed out.",
            )


def _amiss(run: StoredRun, metric: str) -> str:
    if run.status != "FINISHED":
        return ""
    value = run.metrics.get(metric)
    return ", which has none" if value is None else f", in which it is {value}"
