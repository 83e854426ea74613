"""Predicted numbers and what happened, by the levels of a field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import check_fraction
from trueup.errors import InvalidInputError
from trueup.fields.columns import require_rows
from trueup.fields.levels import read_levels
from trueup.losses import LOSSES, FloatArray
from trueup.read.columns import column, floats, read_weight, refuse_rows
from trueup.read.targets import Notices, check_prediction, read_labels, read_prediction


@dataclass(frozen=True)
class NumberRows:
    """Rows of a field: what happened, what was predicted, and weights."""

    actual: FloatArray
    expected: FloatArray
    weight: FloatArray
    codes: NDArray[np.intp]
    names: tuple[str, ...]

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum over each level."""
        return np.asarray(np.bincount(self.codes, values, len(self.names)), np.float64)

    def counts(self) -> NDArray[np.intp]:
        """Return the rows of positive weight on each level."""
        return np.bincount(self.codes[self.weight > 0.0], minlength=len(self.names))


def read_number_rows(
    y_true: Any,
    y_pred: Any,
    field: Any,
    *,
    loss: str,
    name: str,
    n_quantiles: int,
    sample_weight: Any = None,
    exposure: Any = None,
) -> NumberRows:
    """Read rows of positive weight for a loss of numbers; an exposure multiplies the predictions.

    Raises
    ------
    InvalidInputError
        If an argument has the wrong shape, type or range.
    """
    actual = read_labels(column(y_true, "y_true"), LOSSES[loss], None, 1)
    expected = check_prediction(read_prediction(y_pred, None), LOSSES[loss], Notices())
    _require_rows("y_pred", expected, len(actual))
    if exposure is not None:
        expected = expected * _read_exposure(exposure, len(actual))
    levels = read_levels(field, name, n_quantiles)
    require_rows(len(actual), name, len(levels.codes))
    weight = read_weight(sample_weight, len(actual))
    weight = np.ones(len(actual)) if weight is None else weight
    kept = weight > 0.0
    present, codes = np.unique(levels.codes[kept], return_inverse=True)
    names = tuple(levels.names[code] for code in present)
    return NumberRows(actual[kept], expected[kept], weight[kept], codes, names)


def _read_exposure(exposure: Any, n: int) -> FloatArray:
    values = floats(column(exposure, "exposure"), "exposure")
    _require_rows("exposure", values, n)
    refuse_rows(values <= 0.0, values, "exposure must be positive", "Leave out such rows.")
    return values


def _require_rows(name: str, values: FloatArray, n: int) -> None:
    if len(values) != n:
        raise InvalidInputError(
            f"{name} must have as many rows as y_true ({n})",
            f"{len(values)}",
            "Pass the value of each row.",
        )


def tail_of(confidence_level: float) -> float:
    """Return what an interval leaves out."""
    check_fraction("confidence_level", confidence_level, "0.95 is usual.")
    return 1.0 - confidence_level
