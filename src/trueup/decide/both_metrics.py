"""Two pipelines on the vanilla and on the calibrated metric, and which of both has less noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trueup.decide.compare import compare
from trueup.decide.pairing import Values
from trueup.decide.reduction import Reduction, variance_reduction
from trueup.decide.verdict import Comparison
from trueup.errors import InvalidInputError
from trueup.presentation import Line, Presented


def order_note(vanilla: Comparison, calibrated: Comparison) -> str:
    """Say whether the two metrics disagree on which pipeline is better.

    Parameters
    ----------
    vanilla, calibrated : Comparison
        The same runs, compared on either metric.

    Returns
    -------
    str
        Empty where both differences have one sign, else a sentence with the difference of the bias
        costs.

    Notes
    -----
    The bias cost of a run is vanilla - calibrated, hence the difference of the bias costs is the
    difference of the differences. Where it turns the order, the pipelines differ in their mean
    calibration, which the calibrated metric takes out on purpose.

    Examples
    --------
    >>> from trueup.comparison import compare, order_note
    >>> vanilla = compare({0: 0.41, 1: 0.42}, {0: 0.44, 1: 0.45})
    >>> order_note(vanilla, vanilla)
    ''
    """
    if vanilla.difference * calibrated.difference >= 0.0:
        return ""
    cost = vanilla.difference - calibrated.difference
    return (
        "vanilla and calibrated metric disagree on the order: the pipelines differ in mean "
        f"calibration, with a bias cost of candidate - baseline of {cost:+.3g}"
    )


LEAST_PAIRS = 3


@dataclass(frozen=True)
class BothMetrics(Presented):
    """One comparison on either metric; neither is chosen.

    Attributes
    ----------
    vanilla, calibrated : Comparison
        The same pairs of runs on both metrics.
    noise : Reduction or None
        1 - sd ratio of the pairs' differences, positive where the calibrated metric has less noise;
        None with fewer than 3 pairs, or where the differences of a metric don't vary.

    Examples
    --------
    >>> from trueup.comparison import compare_both
    >>> one = {0: 0.41, 1: 0.42, 2: 0.40}, {0: 0.44, 1: 0.45, 2: 0.42}
    >>> two = {0: 0.40, 1: 0.40, 2: 0.40}, {0: 0.43, 1: 0.43, 2: 0.42}
    >>> found = compare_both(one, two)
    >>> found.vanilla.verdict, found.less_noise
    ('inconclusive', 'not resolved')
    """

    vanilla: Comparison
    calibrated: Comparison
    noise: Reduction | None

    @property
    def less_noise(self) -> Literal["vanilla", "calibrated", "not resolved"]:
        """The metric whose differences vary less over these seeds, if the interval says so."""
        if self.noise is None or self.noise.low <= 0.0 <= self.noise.high:
            return "not resolved"
        return "calibrated" if self.noise.value > 0.0 else "vanilla"

    def noise_sentence(self) -> str:
        """Return which metric has less noise on these seeds, in words."""
        if self.noise is None:
            return f"which metric has less noise needs {LEAST_PAIRS} pairs whose values differ"
        ratio = 1.0 - self.noise.value
        ends = f"[{1.0 - self.noise.high:.2f}, {1.0 - self.noise.low:.2f}]"
        found = (
            f"the calibrated differences have {ratio:.2f} times the sd of the vanilla ones {ends} "
            f"over these {self.noise.n} pairs"
        )
        if self.less_noise == "not resolved":
            return f"{found}: which metric has less noise is not resolved"
        return f"{found}: the {self.less_noise} metric has less noise here"

    def sentence(self, candidate: str = "candidate", baseline: str = "baseline") -> str:
        """Return both decisions and the noise, a line each."""
        lines = [
            f"vanilla: {self.vanilla.sentence(candidate, baseline)}",
            f"calibrated: {self.calibrated.sentence(candidate, baseline)}",
            f"{self.noise_sentence()}.",
        ]
        note = order_note(self.vanilla, self.calibrated)
        return "\n".join([*lines, f"{note}."] if note else lines)

    def summary(self) -> str:
        """Return both decisions and the noise, a line each."""
        return self.sentence()

    def lines(self) -> tuple[Line, ...]:
        """Return the mean difference on either metric."""
        both = {"vanilla": self.vanilla, "calibrated": self.calibrated}
        return tuple(
            Line(f"difference, {name}", c.difference, c.low, c.high) for name, c in both.items()
        )

    def __str__(self) -> str:
        return self.sentence()


def compare_both(
    vanilla: tuple[Values, Values], calibrated: tuple[Values, Values], **options: Any
) -> BothMetrics:
    """Compare two pipelines on both metrics.

    Parameters
    ----------
    vanilla, calibrated : (candidate, baseline), mappings seed -> value
        Both metrics of the same runs.
    **options
        Keywords of :func:`compare`, for both.

    Returns
    -------
    BothMetrics
        Two comparisons. Each keeps its own error rate; a user who takes the verdict of whichever
        metric gives one has up to the sum of both.

    Raises
    ------
    InvalidInputError
        As :func:`compare` does, or if the metrics are of different seeds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, b, jitter = (dict(enumerate(rng.normal(0.0, 0.01, 12))) for _ in range(3))
    >>> noisy = {seed: value + jitter[seed] for seed, value in a.items()}
    >>> both = compare_both((noisy, b), (a, b))
    >>> both.noise.n
    12
    """
    return both_metrics(compare(*vanilla, **options), compare(*calibrated, **options))


def both_metrics(vanilla: Comparison, calibrated: Comparison) -> BothMetrics:
    """Join comparisons of the same runs; refuse those whose pairs differ."""
    if vanilla.pairs != calibrated.pairs:
        raise InvalidInputError(
            "vanilla and calibrated must be of the same runs",
            f"{vanilla.n_pairs} and {calibrated.n_pairs} pairs",
            "Log both metrics for each seed.",
        )
    first, second = vanilla.differences, calibrated.differences
    noise = None
    if len(first) >= LEAST_PAIRS and np.ptp(first) > 0.0 and np.ptp(second) > 0.0:
        noise = variance_reduction(first, second, confidence_level=vanilla.confidence_level)
    return BothMetrics(vanilla, calibrated, noise)
