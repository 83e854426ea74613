"""What a calibrator reads: probabilities, labels, weights and fields, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from trueup.errors import InvalidInputError
from trueup.losses import EPS
from trueup.read.columns import read_weight
from trueup.read.targets import ROW_SUM_TOLERANCE

FloatArray = NDArray[np.float64]
Columns = Mapping[str, Any]


def check_probabilities(X: Any) -> FloatArray:
    """Return P(second class) of shape (n,), or for k > 2 classes the table of shape (n, k).

    One column is the probability of the second class, two or more those of all classes. Refused are
    missing values, values outside [0, 1], and rows of several columns without sum 1.
    """
    table = check_array(X, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    if table.ndim == 1:
        table = table[:, None]
    rule, fix = "X must hold probabilities in [0, 1]", "Leave out the rows of NaN or infinity."
    _refuse(~np.isfinite(table).all(axis=1), table, rule, fix)
    fix = "Pass the predictions of a model, for logits their sigmoid or softmax."
    _refuse(((table < 0.0) | (table > 1.0)).any(axis=1), table, rule, fix)
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    off = np.abs(table.sum(axis=1) - 1.0) > ROW_SUM_TOLERANCE
    fix = "Pass a single column for the probability of the second class."
    _refuse(off, table, "X must hold one probability per class, with sum 1", fix)
    return np.asarray(table[:, 1] if table.shape[1] == 2 else table)


def _refuse(bad: NDArray[np.bool_], table: FloatArray, rule: str, fix: str) -> None:
    """Refuse rows, with the first one of them."""
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(rule, f"{table[row].tolist()} at index {row}", fix)


def to_logit(probability: FloatArray) -> FloatArray:
    """Return log-odds (n,) or log-probabilities (n, k), clipped at float64's eps."""
    if probability.ndim == 2:
        return np.asarray(np.log(np.clip(probability, EPS, 1.0)))
    clipped = np.clip(probability, EPS, 1.0 - EPS)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def check_columns(fields: Columns | None, n: int) -> dict[str, NDArray[Any]]:
    """Return the fields as arrays, by name; refuse what is no mapping to columns of n values."""
    if fields is None:
        return {}
    if not hasattr(fields, "keys"):
        raise InvalidInputError(
            "fields must be a mapping from name to column",
            f"{type(fields).__name__}",
            'Pass for example fields={"site": site}.',
        )
    columns = {str(name): np.asarray(fields[name]) for name in fields.keys()}  # noqa: SIM118
    for name, column in columns.items():
        if column.shape != (n,):
            raise InvalidInputError(
                f"fields[{name!r}] must have shape ({n},)",
                str(column.shape),
                "Give one value for each row of X.",
            )
    return columns


def check_weight(sample_weight: Any, n: int) -> FloatArray:
    """Return weights, ones where none are given; refuse any without a finite sum."""
    if np.isscalar(sample_weight):  # scikit-learn takes one for all
        sample_weight = np.full(n, sample_weight)
    weight = read_weight(sample_weight, n)
    if weight is None:
        return np.ones(n)
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise InvalidInputError(
                "sample_weight must add up to a finite number", "infinity", "Rescale the weights."
            )
    return weight
