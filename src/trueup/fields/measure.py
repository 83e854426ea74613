"""Calibration errors over the levels of a field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.arguments import LARGEST_FLOAT, is_real
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.calibration import FieldCalibration, calibration_of
from trueup.fields.cells import group_rows
from trueup.fields.columns import (
    BinaryRows,
    read_binary_rows,
    sums_by_code,
    sums_over,
)
from trueup.fields.distribution import mean_absolute_deviation, two_sided_p_values
from trueup.fields.levels import read_levels, require_few_levels
from trueup.fields.noise import check_epsilon, measure_noise
from trueup.losses import LOSSES
from trueup.read.columns import require_rows
from trueup.read.rows import read_rows


def field_calibration(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    epsilon: float = 0.01,
    n_quantiles: int = 20,
    sample_weight: Any = None,
    name: str = "field",
    random_state: int = 0,
) -> FieldCalibration:
    """Measure the calibration error over the levels of one field, its noise and its worst cells.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row: strings, integers, categories; a missing value is a level of its own.
        Numbers with a fractional part are cut at their quantiles.
    epsilon : float, default 0.01
        Added to the label rate in the denominator of the Field-RCE; positive.
    n_quantiles : int, default 20
        Number of quantile bins of a field of fractional numbers.
    sample_weight : array-like of shape (n,), optional
        Weights. With them the floor is simulated.
    name : str
        Name of the field, for messages.
    random_state : int, default 0
        Seed of the simulated labels.

    Notes
    -----
    The floor of the Field-ECE is the sum of the mean absolute deviations of the cells' numbers of
    positives over n; that of the Field-RCE is simulated. The Field-ECE has no bootstrap interval:
    resampling adds the noise a second time, and the interval can exclude the value itself.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup import field_calibration
    >>> site = np.repeat(["a", "b"], 500)
    >>> y_true = np.tile([0, 0, 0, 0, 1], 200)
    >>> result = field_calibration(y_true, np.where(site == "a", 0.2, 0.3), site)
    >>> round(result.ece, 3), round(result.floor, 4), result.cells.level[0]
    (0.05, 0.0153, np.str_('b'))
    """
    check_epsilon(epsilon)
    rows = read_binary_rows(y_true, y_proba, sample_weight, others={"field": field})
    return calibration_of_rows(
        rows, field, name, epsilon=epsilon, n_quantiles=n_quantiles, random_state=random_state
    )


def calibration_of_rows(
    rows: BinaryRows,
    field: Any,
    name: str,
    *,
    epsilon: float = 0.01,
    n_quantiles: int = 20,
    random_state: int = 0,
) -> FieldCalibration:
    """Measure a field on rows that were checked; the rest as for :func:`field_calibration`."""
    levels = read_levels(field, name, n_quantiles)
    require_rows(len(rows.y_true), name, len(levels.codes))
    require_few_levels(len(levels.names), name)
    cells = group_rows(levels, rows.y_true, rows.y_proba, rows.weight)
    cells = cells.keep(cells.sums.total > 0.0)
    floor = None
    if cells.weight is None:
        floor = float(mean_absolute_deviation(cells).sum() / len(cells.y_true))
    noise = measure_noise(cells.sums, epsilon, random_state, rows=cells, floor=floor)
    return calibration_of(cells.sums, epsilon, noise, two_sided_p_values(cells))


def field_calibration_error(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    relative: bool = False,
    epsilon: float = 0.01,
    min_count: int = 0,
    n_quantiles: int = 20,
    sample_weight: Any = None,
) -> float:
    """Return the Field-ECE, or the Field-RCE; lower is better.

    Parameters
    ----------
    y_true, y_proba : array-like of shape (n,)
        Labels 0/1 and probabilities.
    field : array-like of shape (n,)
        Level of each row; a missing value is a level of its own. Numbers with a fractional part are
        cut at their quantiles.
    relative : bool, default False
        False: Field-ECE, Eq. 5. True: Field-RCE, Eq. 6.
    epsilon : float, default 0.01
        Added to the label rate in the denominator of the Field-RCE; positive.
    min_count : int, default 0
        Levels with fewer rows are left out.
    n_quantiles : int, default 20
        Number of quantile bins of a field of fractional numbers.
    sample_weight : array-like of shape (n,), optional
        Weights.

    References
    ----------
    "Field-aware calibration: a simple and empirically strong method for reliable probabilistic
    predictions", Eq. 5 and 6.

    Examples
    --------
    >>> field_calibration_error([0, 1, 1, 0], [0.25, 0.5, 0.75, 0.5], ["a", "a", "b", "b"])
    0.125
    """
    check_epsilon(epsilon)
    if not (is_real(min_count) and min_count <= LARGEST_FLOAT):
        raise InvalidInputError(
            "min_count must be a number of rows", repr(min_count), "0 takes every level."
        )
    if not isinstance(relative, bool | np.bool_):
        raise InvalidInputError("relative must be True or False", repr(relative), "Choose one.")
    table = sums_by_code(y_true, y_proba, field, sample_weight)
    if table is None:
        rows = read_binary_rows(y_true, y_proba, sample_weight, others={"field": field})
        levels = read_levels(field, "field", n_quantiles)
        require_rows(len(rows.y_true), "field", len(levels.codes))
        sums = sums_over(levels.codes, rows, len(levels.names))
    else:
        sums = table[:, [0, 0, 1, 2]]
    sums = sums[(sums[:, 0] >= min_count) & (sums[:, 1] > 0.0)]
    if len(sums) == 0:
        raise UndefinedMetricError(
            f"field must have a level with at least min_count={min_count} rows",
            "none",
            "Lower min_count.",
        )
    _, total, label_sum, proba_sum = sums.T
    gap = np.abs(label_sum - proba_sum)
    if relative:
        gap = gap / (label_sum / total + epsilon)
    return float(gap.sum() / total.sum())


@dataclass(frozen=True)
class ClassCalibration:
    """Calibration of several classes over the levels of one field.

    Attributes
    ----------
    top_label : FieldCalibration
        How often the most probable class is right, against its probability.
    by_class : mapping from class to FieldCalibration
        How often each class occurs, against its probability, in the order of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.fields.measure import class_calibration
    >>> proba = np.tile([[0.6, 0.2, 0.2]], (10, 1))
    >>> found = class_calibration([0, 0, 0, 1, 2] * 2, proba, ["a"] * 10)
    >>> round(found.top_label.ece, 3), round(found.classwise_ece, 3)
    (0.0, 0.0)
    """

    top_label: FieldCalibration
    by_class: dict[str, FieldCalibration]

    @property
    def classwise_ece(self) -> float:
        """Mean over the classes of their Field-ECE."""
        return float(np.mean([found.ece for found in self.by_class.values()]))

    @property
    def classwise_floor(self) -> float:
        """What ``classwise_ece`` would be on average of a right model."""
        return float(np.mean([found.floor for found in self.by_class.values()]))


def class_calibration(
    y_true: Any,
    y_proba: Any,
    field: Any,
    *,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
    **options: Any,
) -> ClassCalibration:
    """Measure each class, and the most probable one, over the levels of a field.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Classes.
    y_proba : array-like of shape (n, k)
        Probabilities of k > 2 classes.
    field : array-like of shape (n,)
        Level of each row.
    labels : sequence, optional
        The classes in the order of the columns; sorted by default.
    sample_weight : array-like of shape (n,), optional
        Weights.
    **options
        Further keywords of :func:`trueup.field_calibration`.

    Raises
    ------
    InvalidInputError
        If the predictions have fewer than 3 columns, or as ``field_calibration`` says.

    Examples
    --------
    >>> import numpy as np
    >>> from trueup.fields.measure import class_calibration
    >>> proba = np.tile([[0.5, 0.3, 0.2]], (20, 1))
    >>> list(class_calibration(list("aaabc") * 4, proba, ["x"] * 20).by_class)
    ['a', 'b', 'c']
    """
    rows = read_rows(y_true, y_proba, loss=LOSSES["log_loss"], labels=labels)
    if rows.margin.ndim != 2:
        raise InvalidInputError(
            "y_proba must have a column for each of 3 classes or more",
            "two classes",
            "Use field_calibration.",
        )
    proba, label = np.asarray(y_proba, dtype=np.float64), rows.y_true.astype(np.intp)
    options["sample_weight"] = sample_weight
    best = proba.argmax(axis=1)
    names = np.unique(np.asarray(y_true)) if labels is None else labels
    return ClassCalibration(
        top_label=field_calibration(
            (label == best).astype(float), proba[np.arange(len(best)), best], field, **options
        ),
        by_class={
            str(name): field_calibration((label == k).astype(float), proba[:, k], field, **options)
            for k, name in enumerate(names)
        },
    )
