"""The result of a comparison and the sentence that says it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.decide.pairing import Estimand, FloatArray, Seed
from trueup.decide.row_bootstrap import RowInterval
from trueup.decide.seeds_needed import SeedsNeeded, seeds_from_differences
from trueup.presentation import Line, Presented

Verdict = Literal["candidate", "baseline", "inconclusive"]


@dataclass(frozen=True)
class Comparison(Presented):
    """Decision between two pipelines from their runs.

    Attributes
    ----------
    verdict : {"candidate", "baseline", "inconclusive"}
        The pipeline whose mean metric is better by more than ``min_effect``.
    difference : float
        Mean over pairs of candidate minus baseline, in units of the metric.
    low, high : float
        Anytime-valid interval of E[candidate - baseline] over seeds, with the validation rows
        fixed; infinite with too few pairs (fewer than 5 at 95%).
    p_better, p_better_low, p_better_high : float
        Probability that the candidate's model is the better one, ties counting one half, and its
        interval, which holds for a fixed number of runs: it is not anytime-valid.
    estimand : {"paired", "all pairs"}
        Whether ``p_better`` is about runs that share a seed, or about all pairs (Eq. 8).
    n_pairs : int
        Pairs that the difference is a mean of.
    n_dropped : int
        Finished runs that are in no pair.
    failed_candidate, failed_baseline : tuple
        Seeds that were left out because they have no finite value.
    min_effect, confidence_level, greater_is_better
        As given.
    rows : RowInterval or None
        Interval over seeds and rows, where row losses were given.
    pairs, differences
        The pairs of seeds and the difference of each.

    Examples
    --------
    >>> from trueup.comparison import compare
    >>> compare({0: 0.41, 1: 0.42, 2: 0.40}, {0: 0.44, 1: 0.45, 2: 0.42}).verdict
    'inconclusive'
    """

    verdict: Verdict
    difference: float
    low: float
    high: float
    p_better: float
    p_better_low: float
    p_better_high: float
    estimand: Estimand
    n_pairs: int
    n_dropped: int
    failed_candidate: tuple[Seed, ...]
    failed_baseline: tuple[Seed, ...]
    min_effect: float
    confidence_level: float
    greater_is_better: bool
    rows: RowInterval | None
    pairs: tuple[tuple[Seed, Seed], ...] = field(repr=False)
    differences: FloatArray = field(repr=False, compare=False)

    def seeds_needed(self, *, power: float = 0.8) -> SeedsNeeded | None:
        """Return how many seeds give a verdict with that probability; None with a single pair."""
        if self.n_pairs < 2:
            return None
        return seeds_from_differences(
            self.differences,
            power=power,
            min_effect=self.min_effect,
            confidence_level=self.confidence_level,
        )

    def sentence(self, candidate: str = "candidate", baseline: str = "baseline") -> str:
        """Return the decision in words.

        Parameters
        ----------
        candidate, baseline : str
            Names of the pipelines.
        """
        better, worse = candidate, baseline
        share = (self.p_better, self.p_better_low, self.p_better_high)
        if self.verdict == "baseline" or (self.verdict != "candidate" and self.p_better < 0.5):
            better, worse = baseline, candidate
            share = (1.0 - share[0], 1.0 - share[2], 1.0 - share[1])
        won = f"{share[0]:.0%} of {self._pairs_in_words()} {_bracket(share[1:], 100.0, '.0f')}"
        parts = [self._head(better, worse, won), self._size(candidate, baseline), *self._remarks()]
        if self.verdict == "inconclusive":
            parts.append(self._outlook())
        return "; ".join(parts) + "."

    def __str__(self) -> str:
        return self.sentence()

    def summary(self) -> str:
        """Return the decision in words."""
        return self.sentence()

    def lines(self) -> list[Line]:
        """Return the mean difference and the probability of being better, with intervals."""
        return [
            Line("candidate - baseline", self.difference, self.low, self.high),
            Line("P(candidate better)", self.p_better, self.p_better_low, self.p_better_high),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and texts that fit into JSON; infinite ends become None."""
        numbers = ("difference", "low", "high", "p_better", "p_better_low", "p_better_high")
        plain = {name: _finite(getattr(self, name)) for name in numbers}
        same = ("estimand", "n_pairs", "n_dropped", "min_effect", "confidence_level")
        return {
            "verdict": self.verdict,
            **plain,
            **{name: getattr(self, name) for name in same},
            "greater_is_better": self.greater_is_better,
            "failed_candidate": [str(seed) for seed in self.failed_candidate],
            "failed_baseline": [str(seed) for seed in self.failed_baseline],
            "rows": None if self.rows is None else vars(self.rows).copy(),
        }

    def _pairs_in_words(self) -> str:
        if self.estimand == "paired":
            return f"{self.n_pairs} pairs that share a seed"
        return "all pairs"

    def _head(self, better: str, worse: str, won: str) -> str:
        if self.verdict == "inconclusive":
            return f"Inconclusive: {better} beats {worse} in {won}"
        return f"{better} beats {worse} in {won}"

    def _size(self, candidate: str, baseline: str) -> str:
        ends = _bracket((self.low, self.high), 1.0, "+.3g")
        better = "(higher is better)" if self.greater_is_better else "(lower is better)"
        difference = f"mean of {candidate} - {baseline} {self.difference:+.3g} {ends}"
        size = f"{difference} {better} on these rows"
        return size if self.rows is None else f"{size}, over seeds and at any time"

    def _remarks(self) -> list[str]:
        remarks = []
        if self.rows is not None:
            remarks.append(self._rows_in_words(self.rows))
        failed = len(self.failed_candidate) + len(self.failed_baseline)
        if failed:
            remarks.append(f"{failed} failed run{'s' * (failed > 1)} left out")
        if self.n_dropped and self.estimand == "paired":
            dropped = self.n_dropped
            remarks.append(f"{dropped} run{'s' * (dropped > 1)} without a partner left out")
        return remarks

    @property
    def _level(self) -> str:
        return f"{100.0 * self.confidence_level:.4g}%"

    def _rows_in_words(self, rows: RowInterval) -> str:
        """Say what kind of interval it is: it may be narrower, and promises less."""
        ends = _bracket((rows.low, rows.high), 1.0, "+.3g")
        label = f"bootstrap over seeds and rows {ends}, for these numbers of both"
        if rows.high - rows.low < self.high - self.low:
            return f"{label}; it is narrower since only the first one may be looked at each seed"
        return label

    def _outlook(self) -> str:
        needed = self.seeds_needed()
        if needed is None:
            return "more seeds are needed"
        return f"with a power of {needed.power:.0%}, {needed} would settle it at {self._level}"


def _bracket(ends: tuple[float, ...], factor: float, form: str) -> str:
    return "[" + ", ".join(f"{factor * end:{form}}" for end in ends) + "]"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
