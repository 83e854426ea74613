"""Fit the bias on some groups of rows, correct and score others: Algorithm 1 on a sample.

A sample is either rows, or weighted points that stand for many rows (see ``trueup.summaries``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, ldexp, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.errors import UndefinedMetricError
from trueup.losses import FloatArray, Loss
from trueup.losses.elementary import dot, exponent_of
from trueup.scoring.result import BiasTerm, Evaluation, EvaluationSpec, StandardErrors
from trueup.splits import GroupArray, Part, Split

if TYPE_CHECKING:
    from trueup.fields.calibration import FieldCalibration

_Rows = NDArray[np.bool_] | slice
_ALL = slice(None)
_SAFE = 1e-150


@dataclass(frozen=True)
class Sample:
    """Rows or points to score, and how many rows they stand for.

    ``weight`` and ``squared_weight`` are sums of the weights, and of their squares, of the rows
    that each of m points stands for; None: ones. ``row_counts`` (n_groups,) are rows of each group,
    ``support`` (n_groups, n_classes) those of positive weight in each class; one column where there
    are no classes.
    """

    loss: Loss
    y_true: FloatArray
    margin: FloatArray
    weight: FloatArray | None
    squared_weight: FloatArray | None
    group: GroupArray
    row_counts: NDArray[np.intp]
    support: NDArray[np.intp]


def score(
    sample: Sample,
    split: Split,
    fingerprint: int,
    fields: Mapping[str, FieldCalibration],
) -> Evaluation:
    """Return the vanilla and the calibrated loss of a sample.

    They are undefined where the bias rows lack a class, no row is left to score, or float64 can't
    hold the result.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        result = _score(sample, split, fingerprint, fields)
    _require_finite(result)
    return result


def _score(
    sample: Sample,
    split: Split,
    fingerprint: int,
    fields: Mapping[str, FieldCalibration],
) -> Evaluation:
    loss, weight = sample.loss, sample.weight
    _require_two_classes(sample.support.sum(axis=0))
    parts = tuple(split.parts(len(sample.row_counts)))
    bias, *biases = _fit_biases(sample, parts, split)
    scored, corrected = _correct(sample, parts, biases)
    own_weight = _take(weight, scored)
    _require_scored_rows(corrected, own_weight)
    values = loss.values(sample.y_true, sample.margin)
    n, n_rows = int(sample.support.sum()), int(sample.row_counts.sum())
    n_scored, n_scored_rows = n, n_rows
    if scored is not _ALL:
        groups = [part.scored for part in parts]
        n_scored = int(sample.support[groups].sum())
        n_scored_rows = int(sample.row_counts[groups].sum())
    vanilla, calibrated = _mean(values, weight), _mean(corrected, own_weight)
    split_name, has_classes = repr(split), loss.task in ("binary", "multiclass")
    n_classes = sample.support.shape[1] if has_classes else None
    return Evaluation(
        vanilla=vanilla,
        calibrated=calibrated,
        vanilla_on_scored_rows=(vanilla if scored is _ALL else _mean(values[scored], own_weight)),
        bias_term=_plain(bias),
        fold_bias_terms=tuple(_plain(own) for own in biases),
        standard_errors=StandardErrors(
            vanilla=_standard_error(values - vanilla, weight, sample.squared_weight, n),
            calibrated=_standard_error(
                corrected - calibrated,
                own_weight,
                _take(sample.squared_weight, scored),
                n_scored,
            ),
        ),
        fields=fields,
        n=n_rows,
        n_scored=n_scored_rows,
        fingerprint=f"{fingerprint:032x}:{split_name}",
        spec=EvaluationSpec(loss.name, split_name, n_classes),
    )


def _fit_biases(sample: Sample, parts: Sequence[Part], split: Split) -> list[FloatArray]:
    """Return the bias of all rows, and that of each part."""
    n_groups = len(sample.row_counts)
    chosen = [[True] * n_groups, *([False] * n_groups for _ in parts)]
    for own, part in zip(chosen[1:], parts, strict=True):
        for group in part.fitted_on:
            own[group] = True
    fitted_on = np.array(chosen)
    supports = fitted_on[1:] @ sample.support
    if supports.min() < max(1, split.min_class_count):
        for support in supports:
            _require_support(support, split)
    rows = sample.y_true, sample.margin, sample.weight
    if fitted_on.all():
        return [sample.loss.fit_bias(*rows)] * len(fitted_on)
    return sample.loss.fit_biases(*rows, sample.group, fitted_on)


def _require_two_classes(support: NDArray[np.intp]) -> None:
    if len(support) > 1 and np.count_nonzero(support) == 1:
        raise UndefinedMetricError(
            "y_true must hold more than one class",
            f"{support.sum()} rows in which all labels are the same ({support.argmax()})",
            "Pass rows of every class.",
        )


def _require_support(support: NDArray[np.intp], split: Split) -> None:
    """Refuse bias rows in which a class is missing or too rare for its bias to mean something."""
    if len(support) == 1 and support[0] == 0:
        raise UndefinedMetricError(
            "split must leave rows to fit the bias on",
            f"none with {split!r}",
            "Use more rows or split=InSample().",
        )
    rarest = int(support.argmin())
    if len(support) > 1 and support[rarest] < split.min_class_count:
        raise UndefinedMetricError(
            (
                f"y_true must hold at least {split.min_class_count} rows of each class where "
                f"{split!r} fits the bias"
            ),
            f"{support[rarest]} of class {rarest}",
            "Use more rows, or split=InSample() if all rows together hold enough.",
        )


def _correct(
    sample: Sample, parts: Sequence[Part], biases: Sequence[FloatArray]
) -> tuple[_Rows, FloatArray]:
    """Return which rows are scored, and the corrected loss of those."""
    groups, n_groups = [part.scored for part in parts], len(sample.row_counts)
    bias_of_group = np.zeros((n_groups, *biases[0].shape))
    bias_of_group[groups] = biases
    scored: _Rows = _ALL
    if len(set(groups)) < n_groups:
        is_scored = np.zeros(n_groups, dtype=bool)
        is_scored[groups] = True
        scored = is_scored[sample.group]
    bias = bias_of_group[sample.group[scored]]
    margin = sample.loss.correct(sample.margin[scored], bias)
    return scored, sample.loss.values(sample.y_true[scored], margin)


def _require_scored_rows(corrected: FloatArray, weight: FloatArray | None) -> None:
    if len(corrected) == 0 or not (weight is None or weight.any()):
        raise UndefinedMetricError(
            "split must leave rows to score", "none", "Use more rows or split=InSample()."
        )


def _require_finite(result: Evaluation) -> None:
    """Refuse losses that are not numbers; the standard error of a single row is nan as ever."""
    errors = result.standard_errors
    values: dict[str, BiasTerm] = {
        "vanilla": result.vanilla,
        "calibrated": result.calibrated,
        "vanilla_on_scored_rows": result.vanilla_on_scored_rows,
        "bias_term": result.bias_term,
        "standard_errors.vanilla": 0.0 if isnan(errors.vanilla) else errors.vanilla,
        "standard_errors.calibrated": 0.0 if isnan(errors.calibrated) else errors.calibrated,
    }
    for name, value in values.items():
        if not all(map(isfinite, value if isinstance(value, tuple) else (value,))):
            raise UndefinedMetricError(
                f"{name} must be finite",
                (
                    f"{value}: the predictions, targets or weights are too large or too small to "
                    "be squared"
                ),
                "Rescale them.",
            )


def _mean(values: FloatArray, weight: FloatArray | None) -> float:
    if weight is None:
        return float(np.add.reduce(values)) / len(values)  # the method takes twice as long on few
    return float(dot(weight, values) / weight.sum())


def _standard_error(
    deviation: FloatArray, weight: FloatArray | None, squared_weight: FloatArray | None, n: int
) -> float:
    """Return the linearised standard error of a (weighted) mean; nan for a single row."""
    if n < 2:
        return nan
    total = len(deviation) if weight is None else float(weight.sum())
    variance, exponent = _sum_of_squares(deviation, squared_weight), 0
    if not _SAFE <= variance <= 1.0 / _SAFE:  # squares have left float64, or nothing deviates
        exponent = exponent_of(deviation)
        variance = _sum_of_squares(np.ldexp(deviation, -exponent), squared_weight)
    return ldexp(sqrt(max(0.0, variance) * n / (n - 1)) / total, exponent)


def _sum_of_squares(values: FloatArray, weight: FloatArray | None) -> float:
    squares = values**2
    return float(np.add.reduce(squares)) if weight is None else dot(weight, squares)


def _take(weight: FloatArray | None, rows: _Rows) -> FloatArray | None:
    return None if weight is None else weight[rows]


def _plain(bias: FloatArray) -> BiasTerm:
    return float(bias) if bias.ndim == 0 else tuple(float(term) for term in bias)
