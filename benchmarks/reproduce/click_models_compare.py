"""From the scores of seeds to the numbers of a row: accuracies, reductions, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from click_models_tables import Pair
from click_models_training import Scores
from numpy.typing import NDArray

from trueup.comparison import Comparison, Proportion, compare, metric_accuracy, paired_win_rate
from trueup.decide.win_rate import share_of_pairs

Results = dict[str, Scores]
N_RESAMPLES = 1000


@dataclass(frozen=True)
class Duel:
    """Two pipelines, A being the one with the lower mean of the vanilla log loss.

    Attributes
    ----------
    a, b : str
        Their names.
    reversed : bool
        Whether the paper has them in the other order.
    vanilla, vanilla_on_holdout, holdout, crossfit : Proportion
        Accuracy of each metric over all pairs of models, Eq. 8.
    paired_vanilla, paired_crossfit : Proportion
        Share of seeds whose model of A wins.
    gain, gain_low, gain_high : float
        Accuracy of crossfit minus that of vanilla, and its bootstrap interval over seeds.
    decision_vanilla, decision_crossfit : Comparison
        A against B, paired by seed.
    """

    a: str
    b: str
    reversed: bool
    vanilla: Proportion
    vanilla_on_holdout: Proportion
    holdout: Proportion
    crossfit: Proportion
    paired_vanilla: Proportion
    paired_crossfit: Proportion
    gain: float
    gain_low: float
    gain_high: float
    decision_vanilla: Comparison
    decision_crossfit: Comparison


def duel(pair: Pair, results: Results) -> Duel:
    """Set the two pipelines against each other."""
    turned = bool(results[pair.b].vanilla.mean() < results[pair.a].vanilla.mean())
    first, second = (pair.b, pair.a) if turned else (pair.a, pair.b)
    a, b = results[first], results[second]
    accuracy = {
        metric: metric_accuracy(getattr(a, metric), getattr(b, metric))
        for metric in ("vanilla", "vanilla_on_holdout", "holdout", "crossfit")
    }
    low, high = gain_interval(a, b)
    return Duel(
        a=first,
        b=second,
        reversed=turned,
        **accuracy,
        paired_vanilla=paired_win_rate(a.vanilla, b.vanilla),
        paired_crossfit=paired_win_rate(a.crossfit, b.crossfit),
        gain=accuracy["crossfit"].value - accuracy["vanilla"].value,
        gain_low=low,
        gain_high=high,
        decision_vanilla=_decision(a.vanilla, b.vanilla),
        decision_crossfit=_decision(a.crossfit, b.crossfit),
    )


def _decision(a: NDArray[np.float64], b: NDArray[np.float64]) -> Comparison:
    return compare(dict(enumerate(a)), dict(enumerate(b)))


def gain_interval(a: Scores, b: Scores) -> tuple[float, float]:
    """Return the 95% bootstrap interval of crossfit's accuracy minus vanilla's.

    Notes
    -----
    Seeds are resampled, the same for both pipelines and both metrics, because a seed stands for
    one order of the data.
    """
    return _interval(resampled_gains(a, b))


def mean_gain_interval(duels: Sequence[Duel], results: Results) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean gain; all pipelines share the seeds."""
    gains = [resampled_gains(results[found.a], results[found.b]) for found in duels]
    return _interval(np.mean(gains, axis=0))


def resampled_gains(a: Scores, b: Scores) -> NDArray[np.float64]:
    """Return the gain in each resample of the seeds, the same resamples for any two pipelines."""
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(N_RESAMPLES):
        seeds = rng.integers(0, len(a.vanilla), len(a.vanilla))
        calibrated = share_of_pairs(a.crossfit[seeds], b.crossfit[seeds])
        gains.append(calibrated - share_of_pairs(a.vanilla[seeds], b.vanilla[seeds]))
    return np.array(gains)


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
