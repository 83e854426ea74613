"""The uncertainty of the bias cost, and the test of having no bias at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueup.arguments import check_fraction, whole_number
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.evaluation.evaluate import evaluate
from trueup.evaluation.resampled_costs import residuals_of, signed_roots
from trueup.evaluation.thin_rows import effective_rows, say_if_few
from trueup.losses import Loss
from trueup.losses.elementary import scaled
from trueup.presentation import Line, Presented
from trueup.read.frames import by_position
from trueup.read.rows import Rows, read_rows

_LEAST_RESAMPLES = 100
_LEAST_FREEDOM = 0.1
"""Of a single row that has nearly all the weight: it says next to nothing, but not nothing."""


@dataclass(frozen=True)
class BiasCostInterval(Presented):
    """Interval of the bias cost that infinitely many validation rows would show.

    Attributes
    ----------
    value : float
        The cross-fitted bias cost; slightly negative values are noise of the fit.
    low, high : float
        Ends of the interval, in the unit of the loss; ``low`` is 0 where no bias is plausible.
    confidence_level : float
        Nominal coverage.

    Examples
    --------
    >>> from trueup import bias_cost_interval
    >>> cost = bias_cost_interval([0, 1] * 100, [0.6, 0.8] * 100, random_state=0)
    >>> bool(cost.low <= cost.value <= cost.high)
    True
    """

    value: float
    low: float
    high: float
    confidence_level: float

    def summary(self) -> str:
        """Return what the bias costs, in words."""
        return (
            f"The bias costs {self.value:.3g}; on infinitely many rows {self.low:.3g} to "
            f"{self.high:.3g} ({self.confidence_level:.0%})."
        )

    def lines(self) -> list[Line]:
        """Return the bias cost with its interval."""
        return [Line("bias cost", self.value, self.low, self.high)]


@dataclass(frozen=True)
class BiasTest(Presented):
    """Score test of the hypothesis that the bias term is 0.

    Attributes
    ----------
    statistic : float
        Mean of label minus prediction over its standard error; positive = predictions too low.
    p_value : float
        Two-sided, from Student's t with ``n_effective - 1`` degrees of freedom.
    n : int
        Rows of positive weight.
    n_effective : float
        Rows of equal weight that would say as much; n without weights.

    Examples
    --------
    >>> from trueup import bias_test
    >>> bias_test([0, 1] * 100, [0.4, 0.6] * 100).p_value
    1.0
    """

    statistic: float
    p_value: float
    n: int
    n_effective: float

    def summary(self) -> str:
        """Return which way the predictions are off, and how likely chance is as good."""
        way = "low" if self.statistic > 0 else "high"
        return (
            f"Predictions are too {way} by {abs(self.statistic):.3g} standard errors; without a "
            f"bias as much has probability {self.p_value:.3g}."
        )

    def lines(self) -> list[Line]:
        """Return the statistic and its p-value."""
        return [Line("statistic", self.statistic), Line("p-value", self.p_value)]


def bias_cost_interval(
    y_true: Any,
    y_pred: Any = None,
    *,
    loss: str | Loss = "log_loss",
    y_logit: Any = None,
    labels: Sequence[Any] | None = None,
    row_id: Any = None,
    sample_weight: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> BiasCostInterval:
    """Return a bootstrap interval of the bias cost that keeps its coverage near a cost of 0.

    Parameters
    ----------
    y_true, y_pred, loss, y_logit, labels, row_id, sample_weight
        As in :func:`trueup.evaluate`; one bias term, and a loss that this term minimises.
    confidence_level : float, default 0.95
        Nominal coverage, in (0, 1).
    n_resamples : int, default 1000
        Bootstrap samples, at least 100. More than 20,000 rows are resampled as a thousand groups of
        rows with nearly the same residual, by Poisson weights.
    random_state : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    BiasCostInterval
        Cross-fitted cost with the ends of the interval.

    Raises
    ------
    InvalidInputError
        For bad input, several bias terms, or a loss that the bias term does not minimise.

    Notes
    -----
    Near 0 the cost is a square, ``J c^2 / 2``: its distribution is a chi-square, resampling doubles
    its mean, and an ordinary bootstrap interval of it excludes 0 for a model without a bias.
    Its signed root ``sign(c) sqrt(in-sample cost)`` is smooth in the rows everywhere. That root is
    resampled (percentile interval); the squares of the values in its interval are the
    interval of the cost. The rows are resampled with the model fixed: nothing is said about other
    training seeds.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup import bias_cost_interval
    >>> y_true = np.tile([0, 0, 0, 1], 250)
    >>> interval = bias_cost_interval(y_true, np.full(1000, 0.5), n_resamples=200)
    >>> interval.low < interval.value < interval.high
    True
    """
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    whole_number("n_resamples", n_resamples, _LEAST_RESAMPLES, "1000 is usual.")
    columns = {"labels": labels, "row_id": row_id, "sample_weight": sample_weight}
    rows = _read_one_bias(y_true, y_pred, loss=loss, y_logit=y_logit, **columns)
    if not rows.loss.minimised_by_bias:
        raise InvalidInputError(
            "loss must be minimised by its bias term",
            repr(rows.loss.name),
            'Use loss="log_loss", which has the same bias term.',
        )
    value = evaluate(y_true, y_pred, loss=loss, y_logit=y_logit, **columns).bias_cost
    roots = signed_roots(rows, n_resamples, np.random.default_rng(random_state))
    tail = 0.5 * (1.0 - confidence_level)
    low, high = np.quantile(roots, [tail, 1.0 - tail], method="weibull")
    if rows.weight is not None:
        low, high = _widened(
            (low, high), float(np.median(roots)), effective_rows(rows.weight), tail
        )
        say_if_few(rows.weight, len(rows.y_true))
    ends = sorted((float(low) ** 2, float(high) ** 2))
    return BiasCostInterval(
        value, 0.0 if low <= 0.0 <= high else ends[0], ends[1], confidence_level
    )


def bias_test(
    y_true: Any,
    y_pred: Any = None,
    *,
    loss: str | Loss = "log_loss",
    y_logit: Any = None,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> BiasTest:
    """Test whether predictions are right in the mean, that is, whether the bias term is 0.

    Parameters
    ----------
    y_true, y_pred, loss, y_logit, labels, sample_weight
        As in :func:`trueup.evaluate`; one bias term.

    Returns
    -------
    BiasTest
        Statistic and two-sided p-value.

    Raises
    ------
    UndefinedMetricError
        For fewer than two rows of positive weight.

    Notes
    -----
    The score of the bias at 0 is the sum of label minus prediction, for log loss, squared error and
    Poisson deviance alike; those of gamma and Tweedie weigh it by ``mu^(1 - power)``. Its variance
    is estimated from the rows, so the test asks for the mean alone: a model that is miscalibrated
    in shape but right in the mean is not rejected.
    With few events it rejects too often: at a constant rate of events, a nominal 5% test rejected
    a right model in 12% of 2,000 runs at 5 events, 7% at 10 and at 30, 6% at 100.

    Examples
    --------
    >>> from trueup import bias_test
    >>> result = bias_test([1.0, 2.0, 4.0], [0.0, 2.0, 2.0], loss="mean_squared_error")
    >>> round(result.statistic, 4), round(result.p_value, 4)
    (1.7321, 0.2254)
    """
    from scipy.stats import t as student_t  # half a second of imports

    rows = _read_one_bias(
        y_true, y_pred, loss=loss, y_logit=y_logit, labels=labels, sample_weight=sample_weight
    )
    residual = scaled(residuals_of(rows))
    weight = np.ones(len(residual)) if rows.weight is None else rows.weight
    n = int(np.count_nonzero(weight))
    if n < 2:
        raise UndefinedMetricError(
            "y_true must hold at least two rows for a test", str(n), "Pass more rows."
        )
    mean = float(np.average(residual, weights=weight))
    spread = weight * (residual - mean)
    effective = effective_rows(weight)
    freedom = max(effective - 1.0, _LEAST_FREEDOM)
    error = float(np.sqrt(spread @ spread * effective / freedom) / weight.sum())
    statistic = mean / error if error > 0.0 else (0.0 if mean == 0.0 else np.copysign(np.inf, mean))
    p_value = float(2.0 * student_t.sf(abs(statistic), freedom))
    say_if_few(rows.weight, len(residual))
    return BiasTest(float(statistic), p_value, n, effective)


def _widened(
    ends: tuple[float, float], middle: float, effective: float, tail: float
) -> tuple[float, float]:
    """Widen a percentile interval as Student's t is wider than the normal distribution.

    The bootstrap of few rows is too narrow, and with weights few rows may be what there is.
    """
    from scipy.stats import norm  # half a second of imports
    from scipy.stats import t as student_t

    freedom = max(effective - 1.0, _LEAST_FREEDOM)
    factor = float(student_t.ppf(tail, freedom) / norm.ppf(tail)) * np.sqrt(effective / freedom)
    low, high = (middle + factor * (end - middle) for end in ends)
    return low, high


def _read_one_bias(y_true: Any, y_pred: Any, **arguments: Any) -> Rows:
    names = ("y_logit", "row_id", "sample_weight")
    given = {"y_true": y_true, "y_pred": y_pred, **{n: arguments.get(n) for n in names}}
    rows = read_rows(**arguments | by_position(given, labels=arguments["labels"]))
    if rows.margin.ndim == 2:
        raise InvalidInputError(
            "y_pred must have one bias term",
            f"{rows.margin.shape[1]} columns",
            "Look at one class against the others.",
        )
    return rows if rows.weight is None else replace(rows, weight=scaled(rows.weight))
