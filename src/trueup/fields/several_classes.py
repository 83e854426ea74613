"""Fields of more than two classes: each class against the others, and the most probable one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup.errors import InvalidInputError
from trueup.fields.calibration import FieldCalibration
from trueup.fields.measure import field_calibration
from trueup.losses import LOSSES
from trueup.read.rows import read_rows


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
    >>> from trueup.fields.several_classes import class_calibration
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
    >>> from trueup.fields.several_classes import class_calibration
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
