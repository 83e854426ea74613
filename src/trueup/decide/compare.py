"""From the runs of two pipelines to a decision, and of many against one baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.decide.e_process import confidence_radius, prefix_moments
from trueup.decide.pairing import (
    Paired,
    PairedRuns,
    Values,
    check_level,
    check_min_effect,
    pair_up,
)
from trueup.decide.row_bootstrap import RowLosses, row_interval
from trueup.decide.verdict import Comparison, Verdict
from trueup.decide.win_rate import Proportion, metric_accuracy, paired_win_rate
from trueup.errors import InvalidInputError
from trueup.losses.elementary import exponent_of, scaled_by
from trueup.presentation import Line, Presented


def compare(
    candidate: Values,
    baseline: Values,
    *,
    paired: Paired = "auto",
    min_effect: float = 0.0,
    confidence_level: float = 0.95,
    greater_is_better: bool = False,
    allow_failed: bool = False,
    rows: RowLosses | None = None,
) -> Comparison:
    """Decide which of two pipelines has the better mean metric.

    Parameters
    ----------
    candidate, baseline : mapping seed -> value
        One metric per run. None, NaN and infinity mark a failed seed.
    paired : bool or "auto", default "auto"
        Whether runs that share a seed are set against each other. "auto" pairs exactly when at
        least 3 seeds are shared, whatever the values; runs without a partner are dropped and
        counted.
    min_effect : float, default 0
        Smallest difference that matters, in units of the metric: a verdict says that the difference
        is larger.
    confidence_level : float, default 0.95
        1 - the probability that a verdict between equal pipelines is ever given.
    greater_is_better : bool, default False
        Direction of the metric.
    allow_failed : bool, default False
        Leave failed seeds out of both arms and record them. That can bias the comparison: a
        pipeline may fail on its bad seeds.
    rows : (candidate, baseline) mappings seed -> array of shape (n_rows,), optional
        Loss of each validation row of each run; adds an interval over seeds and rows.

    Returns
    -------
    Comparison
        Verdict, difference with an anytime-valid interval, and the probability of a better model.

    Raises
    ------
    InvalidInputError
        If an arm is empty, a seed failed and that is not allowed, or an argument is out of range.

    Notes
    -----
    The verdict is the one of the t-mixture e-process (:mod:`trueup.decide.e_process`), so it
    may be looked at after each seed. Unpaired runs meet in sorted order of their seeds: add seeds
    at the end. The interval is over seeds with the validation rows fixed. The rule is exact for
    normal differences. Two arms of one shape have symmetric differences, whose level held in all
    simulations; where one arm alone is skewed it need not (12% false verdicts in place of 5% for
    exponential differences, looked at after each of 50 seeds).

    Examples
    --------
    >>> candidate = {0: 0.431, 1: 0.428, 2: 0.433, 3: 0.429, 4: 0.430, 5: 0.432}
    >>> baseline = {0: 0.437, 1: 0.432, 2: 0.438, 3: 0.436, 4: 0.435, 5: 0.437}
    >>> decision = compare(candidate, baseline)
    >>> decision.verdict
    'candidate'
    >>> print(decision)  # doctest: +NORMALIZE_WHITESPACE
    candidate beats baseline in 100% of 6 pairs that share a seed [54, 100];
    mean of candidate - baseline -0.00533 [-0.00763, -0.00304] (lower is better)
    on these rows.
    """
    check_min_effect(min_effect)
    check_level("confidence_level", confidence_level)
    if not isinstance(greater_is_better, bool | np.bool_):
        raise InvalidInputError(
            "greater_is_better must be True or False", repr(greater_is_better), "Choose one."
        )
    runs = pair_up(candidate, baseline, paired=paired, allow_failed=allow_failed)
    exponent = exponent_of(runs.differences)  # not 0 where float64 can't hold their squares
    differences = scaled_by(runs.differences, exponent)
    difference = float(np.mean(differences))
    radius = float(confidence_radius(prefix_moments(differences), 1.0 - confidence_level)[-1])
    better = _probability_of_better(runs, confidence_level, greater_is_better)
    low, high = difference - radius, difference + radius
    least = float(scaled_by(np.array([min_effect]), exponent)[0])
    return Comparison(
        verdict=_verdict(low, high, least, greater_is_better),
        difference=float(np.ldexp(difference, exponent)),
        low=float(np.ldexp(low, exponent)),
        high=float(np.ldexp(high, exponent)),
        p_better=better.value,
        p_better_low=better.low,
        p_better_high=better.high,
        estimand=runs.estimand,
        n_pairs=len(runs.pairs),
        n_dropped=runs.n_dropped,
        failed_candidate=runs.failed_candidate,
        failed_baseline=runs.failed_baseline,
        min_effect=min_effect,
        confidence_level=confidence_level,
        greater_is_better=greater_is_better,
        rows=rows and row_interval(rows, runs.pairs, confidence_level=confidence_level),
        pairs=runs.pairs,
        differences=runs.differences,
    )


def _probability_of_better(runs: PairedRuns, level: float, greater_is_better: bool) -> Proportion:
    estimate = paired_win_rate if runs.estimand == "paired" else metric_accuracy
    sign = -1.0 if greater_is_better else 1.0
    return estimate(sign * runs.candidate, sign * runs.baseline, confidence_level=level)


def _verdict(low: float, high: float, min_effect: float, greater_is_better: bool) -> Verdict:
    if high < -min_effect:
        return "baseline" if greater_is_better else "candidate"
    if low > min_effect:
        return "candidate" if greater_is_better else "baseline"
    return "inconclusive"


@dataclass(frozen=True)
class BestOf(Presented):
    """Each candidate against the baseline.

    Attributes
    ----------
    comparisons : mapping from name to Comparison
        Each at the level 1 - (1 - confidence_level) / k of k candidates.
    confidence_level : float
        1 - the probability that any candidate that is no better gets a verdict.

    Examples
    --------
    >>> from trueup.comparison import compare_many
    >>> base = {seed: 0.45 + 0.001 * (seed % 3) for seed in range(8)}
    >>> deep = {seed: 0.42 + 0.001 * (seed % 2) for seed in range(8)}
    >>> wide = {seed: 0.45 + 0.001 * (seed % 2) for seed in range(8)}
    >>> found = compare_many({"deep": deep, "wide": wide}, base)
    >>> found.best, found.better
    ('deep', ('deep',))
    """

    comparisons: dict[str, Comparison]
    confidence_level: float

    @property
    def best(self) -> str:
        """Name of the candidate with the best mean difference."""
        return min(self.comparisons, key=lambda name: _cost(self.comparisons[name]))

    @property
    def better(self) -> tuple[str, ...]:
        """Names of the candidates that beat the baseline, the best mean first."""
        won = [name for name, c in self.comparisons.items() if c.verdict == "candidate"]
        return tuple(sorted(won, key=lambda name: _cost(self.comparisons[name])))

    def sentence(self, baseline: str = "baseline") -> str:
        """Return the decision in words."""
        comparison, k = self.comparisons[self.best], len(self.comparisons)
        told = comparison.sentence(self.best, baseline)
        return f"The best of {k}, with all intervals widened for the choice: {told}"

    def summary(self) -> str:
        """Return the decision in words."""
        return self.sentence()

    def lines(self) -> tuple[Line, ...]:
        """Return the mean difference of each candidate from the baseline, the best first."""
        ordered = sorted(self.comparisons.items(), key=lambda item: _cost(item[1]))
        return tuple(Line(name, c.difference, c.low, c.high) for name, c in ordered)

    def __str__(self) -> str:
        return self.sentence()


def compare_many(
    candidates: Mapping[str, Values],
    baseline: Values,
    *,
    confidence_level: float = 0.95,
    **options: Any,
) -> BestOf:
    """Compare many candidates with one baseline.

    Parameters
    ----------
    candidates : mapping from name to (mapping seed -> value)
        One metric per run of each.
    baseline : mapping seed -> value
        The one to beat.
    confidence_level : float, default 0.95
        Of all verdicts together.
    **options
        Further keywords of :func:`compare`.

    Returns
    -------
    BestOf
        The comparisons, and the best.

    Raises
    ------
    InvalidInputError
        If there is no candidate, or as :func:`compare` does.

    Notes
    -----
    Bonferroni: each comparison is made at ``1 - (1 - confidence_level) / k``. That holds however
    the candidates depend on each other, and they do: they share the baseline and often the seeds.
    The interval of the best is therefore valid although it was chosen for being the best.

    Examples
    --------
    >>> baseline = {0: 0.437, 1: 0.432, 2: 0.438, 3: 0.436, 4: 0.435, 5: 0.437}
    >>> far = {seed: value - 0.01 + 0.0001 * seed for seed, value in baseline.items()}
    >>> near = {seed: value + 0.0001 * (-1) ** seed for seed, value in baseline.items()}
    >>> compare_many({"far": far, "near": near}, baseline).better
    ('far',)
    """
    check_level("confidence_level", confidence_level)
    if not candidates:
        raise InvalidInputError("candidates must hold at least one pipeline", "none", "Name one.")
    level = corrected_level(confidence_level, len(candidates))
    return BestOf(
        {
            name: compare(values, baseline, confidence_level=level, **options)
            for name, values in candidates.items()
        },
        confidence_level,
    )


def corrected_level(confidence_level: float, k: int) -> float:
    """Return the level of each of k comparisons that keeps the level of all together."""
    return 1.0 - (1.0 - confidence_level) / k


def _cost(comparison: Comparison) -> float:
    return -comparison.difference if comparison.greater_is_better else comparison.difference
