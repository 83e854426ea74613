"""Two pipelines set against each other on one metric, or why they may not be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trueup.comparison import Comparison, compare
from trueup.decide.pairing import Seed
from trueup.errors import TrueupError
from trueup_mlflow.compare.direction import is_score_by_name
from trueup_mlflow.compare.pipelines import TwoPipelines
from trueup_mlflow.compare.seed_runs import SeedRuns
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_ui.view.numbers import percent
from trueup_ui.view.pipelines import Pipeline

Outcome = Literal["wins", "loses", "inconclusive", "refused"]

_ENDED = ("FINISHED", "FAILED", "KILLED")
NO_ROWS = (
    "These runs have no fingerprint of the metric, so nothing says that they were scored on the "
    "same rows."
)


@dataclass(frozen=True)
class Pair:
    """A pipeline, as candidate, against another one, with their runs, one of each seed.

    Without a decision there is a refusal; a caution says what is not known about the rows.
    """

    first: Pipeline
    second: Pipeline
    both: TwoPipelines
    comparison: Comparison | None
    refusal: str = ""
    caution: str = ""

    @property
    def outcome(self) -> Outcome:
        """What the first pipeline does."""
        if self.comparison is None:
            return "refused"
        words: dict[str, Outcome] = {"candidate": "wins", "baseline": "loses"}
        return words.get(self.comparison.verdict, "inconclusive")

    @property
    def p_better(self) -> str:
        """Share of pairs in which the first one is better, with its interval."""
        found = self.comparison
        if found is None:
            return ""
        ends = f"{percent(found.p_better_low)} to {percent(found.p_better_high)}"
        return f"{percent(found.p_better)} [{ends}]"

    @property
    def outlook(self) -> str:
        """How many more seeds would settle it; "" where it is settled.

        A simulation says so: it takes a third of a second the first time.
        """
        if self.comparison is None or self.outcome != "inconclusive":
            return ""
        needed = self.comparison.seeds_needed()
        return "more seeds" if needed is None else str(needed)

    @property
    def sentence(self) -> str:
        """The decision in words, with the outlook where it is open."""
        if self.comparison is None:
            return self.refusal
        return self.comparison.sentence(self.first.name, self.second.name)


def undirected(metric: str, higher: bool | None) -> str:
    """Return why a metric is neither ranked nor compared; "" where its direction is known."""
    if higher is not None or not is_score_by_name(metric):
        return ""
    return (
        f"Not ranked or compared: the name of {metric} says that higher is better, and lower is "
        'taken as better until the direction is said. Choose "Better is: higher" on its page, or '
        "pass --greater-is-better to trueup report."
    )


def compare_pair(first: Pipeline, second: Pipeline, metric: str, *, higher: bool | None) -> Pair:
    """Decide between two pipelines on one metric; without ``higher`` lower values are better."""
    both = TwoPipelines(_one_of_each_seed(first.runs), _one_of_each_seed(second.runs))
    if reason := undirected(metric, higher):
        return Pair(first, second, both, None, reason)
    if late := both.late_twin(metric):
        return Pair(first, second, both, None, f"Calibrated values of another step: {late}.")
    numbered = any(run.seed is None for run in (*first.runs, *second.runs))
    try:
        found = compare(
            *both.values(metric),
            paired=False if numbered else "auto",
            greater_is_better=bool(higher),
            allow_failed=True,
        )
    except TrueupError as refusal:
        return Pair(first, second, both, None, str(refusal))
    pairs = found.pairs if found.estimand == "paired" else None
    mismatch = both.fingerprint_mismatch(metric, pairs)
    if mismatch:
        return Pair(first, second, both, None, f"Different validation rows: {mismatch}.")
    return Pair(first, second, both, found, caution=NO_ROWS if mismatch is None else "")


def _one_of_each_seed(runs: Sequence[StoredRun]) -> SeedRuns:
    """Return the ended runs, the first finished one of each seed; those without are numbered."""
    chosen: dict[Seed, StoredRun] = {}
    for position, run in enumerate(run for run in runs if run.status in _ENDED):
        seed = position if run.seed is None else run.seed
        known = chosen.get(seed)
        if known is None or (known.status != "FINISHED" and run.status == "FINISHED"):
            chosen[seed] = run
    return chosen


def paired_values(pair: Pair, metric: str) -> list[tuple[str, float, float]]:
    """Return seed and both values of each pair that shares a seed; none without shared seeds."""
    if pair.comparison is None or pair.comparison.estimand != "paired":
        return []
    first, second = pair.both.values(metric)
    return [
        (str(a), first[a], second[b])
        for a, b in pair.comparison.pairs
        if math.isfinite(first[a]) and math.isfinite(second[b])
    ]
