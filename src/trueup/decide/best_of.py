"""Many candidates against one baseline, with the price of choosing the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueup.decide.compare import compare
from trueup.decide.pairing import Values, check_level
from trueup.decide.verdict import Comparison
from trueup.errors import InvalidInputError
from trueup.presentation import Line, Presented


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
