"""From predictions on the test sets to one estimate, with the interval that it supports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from trueup.arguments import check_fraction
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.resampling.estimate import FoldResult, GEEstimate, Interval
from trueup.resampling.inducers import Predicted
from trueup.resampling.measures import Measure
from trueup.resampling.strategies import Splits
from trueup.splits import Split
from trueup.user_warning import warn_user

Aggregate = str | Callable[[NDArray[np.float64]], float]
Pair = tuple[float, float | None]

_AGGREGATES: dict[str, Callable[[Any], Any]] = {"mean": np.mean, "median": np.median}


@dataclass(frozen=True)
class Plan:
    """What is measured on which splits, and how it is brought together."""

    measure: Measure
    splits: Splits
    aggregate: Aggregate
    bias_split: Split | None
    confidence_level: float

    @property
    def pools_vanilla(self) -> bool:
        """Whether the vanilla measure takes all test sets as one."""
        single = self.splits.of_single_rows and not self.measure.point_wise
        return single or self.aggregate == "pool"

    @property
    def pools_calibrated(self) -> bool:
        """Whether the bias is fitted on all test sets as one."""
        return self.splits.of_single_rows or self.aggregate == "pool"


def check_aggregate(aggregate: Aggregate) -> None:
    """Refuse a way of bringing the test sets together that is no known name and not callable."""
    if not (callable(aggregate) or aggregate in (*_AGGREGATES, "pool")):
        raise InvalidInputError(
            'aggregate must be "mean", "median", "pool" or a function',
            repr(aggregate),
            "Check the spelling.",
        )


def aggregated(predicted: Sequence[Predicted], y: NDArray[Any], plan: Plan) -> GEEstimate:
    """Measure each test set, or all of them as one, and bring the values together."""
    _warn_of_pooling(plan)
    folds = tuple(_fold(one, y, plan, index) for index, one in enumerate(predicted))
    together = _together(predicted, y, plan)
    vanilla = together[0] if plan.pools_vanilla else _combined(plan, [f.vanilla for f in folds])
    calibrated: float | None = None
    if plan.bias_split is not None:
        own = [f.calibrated for f in folds]
        calibrated = together[1] if plan.pools_calibrated else _combined(plan, own)
    return GEEstimate(
        measure=plan.measure.name,
        strategy=plan.splits.name,
        aggregate=_aggregate_name(plan),
        vanilla=vanilla,
        calibrated=calibrated,
        vanilla_interval=_interval(plan, folds, [f.vanilla for f in folds]),
        calibrated_interval=_interval(plan, folds, [f.calibrated for f in folds]),
        folds=folds,
        n_train=float(np.mean([fold.n_train for fold in folds])),
        confidence_level=plan.confidence_level,
        greater_is_better=plan.measure.greater_is_better,
        reasons=_reasons(plan),
    )


def _warn_of_pooling(plan: Plan) -> None:
    if not plan.splits.of_single_rows or plan.aggregate == "pool":
        return
    if not plan.measure.point_wise:
        what = plan.measure.name
    elif plan.bias_split is not None:
        what = f"the calibrated {plan.measure.name}"
    else:
        return
    warn_user(
        f"{what} has no value on a single row: the predictions of all test sets were pooled, so "
        "scores of different models are compared. Use k-fold to avoid it.",
    )


def _fold(one: Predicted, y: NDArray[Any], plan: Plan, index: int) -> FoldResult:
    vanilla = calibrated = None
    if not plan.pools_vanilla:
        split = None if plan.pools_calibrated else plan.bias_split
        vanilla, calibrated = _measured(plan.measure, one, y, split, f"on test set {index}")
    return FoldResult(len(one.train), len(one.test), vanilla, calibrated, one.selected)


def _together(predicted: Sequence[Predicted], y: NDArray[Any], plan: Plan) -> Pair:
    """Return the values of all test sets as one; not computed where nothing needs them."""
    if not plan.pools_vanilla and (plan.bias_split is None or not plan.pools_calibrated):
        return float("nan"), None
    pooled = Predicted(
        np.empty(0, dtype=np.intp),
        np.concatenate([one.test for one in predicted]),
        np.concatenate([one.y_pred for one in predicted]),
        {},
    )
    return _measured(plan.measure, pooled, y, plan.bias_split, "on all test sets as one")


def _measured(
    measure: Measure, one: Predicted, y: NDArray[Any], split: Split | None, where: str
) -> Pair:
    try:
        return measure.values(y[one.test], one.y_pred, one.test, split)
    except UndefinedMetricError as error:
        fix = "" if split is None else " Or use fewer test sets, or calibrated=False."
        raise UndefinedMetricError(f"{measure.name} is undefined {where}: {error}{fix}") from error


def _combined(plan: Plan, values: Sequence[float | None]) -> float:
    combine = plan.aggregate if callable(plan.aggregate) else _AGGREGATES[plan.aggregate]
    return float(combine(np.array(values, dtype=np.float64)))


def _aggregate_name(plan: Plan) -> str:
    if plan.pools_vanilla:
        return "pool"
    if isinstance(plan.aggregate, str):
        return plan.aggregate
    return str(getattr(plan.aggregate, "__name__", type(plan.aggregate).__name__))


def _interval(
    plan: Plan, folds: Sequence[FoldResult], values: Sequence[float | None]
) -> Interval | None:
    known = [value for value in values if value is not None]
    if len(known) < len(folds) or plan.splits.no_interval or plan.aggregate != "mean":
        return None
    return corrected_t_interval(
        known,
        n_train=float(np.mean([fold.n_train for fold in folds])),
        n_test=float(np.mean([fold.n_test for fold in folds])),
        confidence_level=plan.confidence_level,
    )


def _reasons(plan: Plan) -> tuple[str, ...]:
    found = []
    if plan.splits.no_interval is not None:
        found.append(f"no interval: {plan.splits.no_interval}")
    elif plan.aggregate != "mean":
        found.append("no interval: the corrected t interval is for the mean over test sets")
    if not plan.measure.point_wise:
        found.append("no calibrated value: a measure of the set as a whole has no bias term")
    return tuple(found)


def corrected_t_interval(
    fold_values: Sequence[float],
    n_train: float,
    n_test: float,
    *,
    confidence_level: float = 0.95,
) -> tuple[float, float]:
    """Return an interval of the mean error over training sets of one size.

    Parameters
    ----------
    fold_values : sequence of float
        The measure on each test set, at least two.
    n_train, n_test : float
        Rows of a training set and of a test set, both positive.
    confidence_level : float, default 0.95
        In (0, 1).

    Returns
    -------
    tuple of float
        Low and high end, in units of the measure.

    Raises
    ------
    InvalidInputError
        If there are fewer than two values, or an argument is out of range.

    Notes
    -----
    ``mean +- t[B - 1] * sqrt((1 / B + n_test / n_train) * var)`` over B test sets. The values are
    correlated, since training sets overlap; the second term stands for that correlation, taken as
    ``n_test / (n_train + n_test)``. It is a heuristic: no unbiased estimator of the variance of
    k-fold cross-validation exists. The interval is exact for no inducer, and it is wide.

    References
    ----------
    Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52 (2003), the
    corrected resampled t test; Bouckaert and Frank (2004) for repeated k-fold.

    Examples
    --------
    >>> low, high = corrected_t_interval([0.4, 0.5, 0.6], n_train=90, n_test=10)
    >>> round(low, 4), round(high, 4)
    (0.2132, 0.7868)
    """
    values = np.asarray(fold_values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InvalidInputError(
            "fold_values must be at least two numbers",
            f"shape {values.shape}",
            "Use more test sets.",
        )
    for name, size in (("n_train", n_train), ("n_test", n_test)):
        if not size > 0:
            raise InvalidInputError(
                f"{name} must be positive", repr(size), "Pass a number of rows."
            )
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    n = len(values)
    error = np.sqrt((1.0 / n + n_test / n_train) * values.var(ddof=1))
    margin = t.ppf(0.5 + confidence_level / 2.0, n - 1) * error
    return float(values.mean() - margin), float(values.mean() + margin)
