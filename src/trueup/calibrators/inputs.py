"""What a calibrator reads, checked once: probabilities, weights, and fields as integer codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from trueup.errors import InvalidInputError
from trueup.losses import EPS
from trueup.read.columns import is_missing, read_weight, require_shape
from trueup.read.targets import ROW_SUM_TOLERANCE

FloatArray = NDArray[np.float64]
FieldArrays = dict[str, NDArray[Any]]
Columns = Mapping[str, Any]

UNSEEN = 0
MISSING = 1
_FIRST_LEVEL = 2

Kind = Literal["integer", "text", "number", "bin"]
"""How a value finds its level: equality, or for "bin" the interval between inner edges."""


@dataclass(frozen=True)
class FieldLevels:
    """The levels of one field: sorted ``values``, or the inner edges of bins; see ``Kind``."""

    kind: Kind
    values: NDArray[Any]

    @property
    def n_codes(self) -> int:
        """Number of codes, those for unseen and missing values included."""
        return _FIRST_LEVEL + len(self.values) + (self.kind == "bin")

    def codes(self, column: NDArray[Any]) -> NDArray[np.intp]:
        """Return the code of each value: 0 unseen, 1 missing, then the levels in order.

        Text where numbers were fitted is refused, and numbers where text was.
        """
        if self.kind == "text":
            return self._text_codes(column)
        numbers = _as_numbers(column)
        if numbers is None:
            raise InvalidInputError(
                "fields must keep their type between fit and predict",
                f"{column.dtype} for a field of {self.kind} levels",
                "Convert the column as it was for fit.",
            )
        if self.kind == "bin":
            code = np.searchsorted(self.values, numbers, side="right") + _FIRST_LEVEL
        else:
            place = np.minimum(np.searchsorted(self.values, numbers), len(self.values) - 1)
            code = np.where(self.values[place] == numbers, place + _FIRST_LEVEL, UNSEEN)
        if numbers.dtype.kind == "f":
            code[np.isnan(numbers)] = MISSING
        return np.asarray(code, dtype=np.intp)

    def _text_codes(self, column: NDArray[Any]) -> NDArray[np.intp]:
        if column.dtype.kind in "iufbc":
            raise InvalidInputError(
                "fields must keep their type between fit and predict",
                f"{column.dtype} for a field of text levels",
                "Convert the column as it was for fit.",
            )
        table: dict[str | None, int] = {
            level: code for code, level in enumerate(self.values.tolist(), start=_FIRST_LEVEL)
        }
        table[None] = MISSING
        texts = _as_texts(column)
        return np.fromiter((table.get(text, UNSEEN) for text in texts), np.intp, len(texts))


def fit_levels(column: NDArray[Any], n_bins: int = 20) -> FieldLevels:
    """Return the levels of a column of any type; None, NaN and NA are missing.

    A column of floats with more than ``n_bins`` distinct values is cut at its quantiles.
    """
    numbers = _as_numbers(column)
    if numbers is None:
        texts = set(_as_texts(column)) - {None}
        return FieldLevels("text", np.array(sorted(str(text) for text in texts), dtype=np.str_))
    if numbers.dtype.kind != "f":
        return FieldLevels("integer", np.unique(numbers))
    present = numbers[~np.isnan(numbers)]
    levels = np.unique(present)
    if len(levels) <= n_bins:
        return FieldLevels("number", levels)
    inner = np.quantile(present, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    return FieldLevels("bin", np.unique(inner))


def chosen_fields(
    columns: FieldArrays, names: str | list[str] | tuple[str, ...] | None, owner: str
) -> FieldArrays:
    """Return the columns of the names, all of them for None; refuse a name without a column."""
    wanted = list(columns) if names is None else [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in columns:
            raise InvalidInputError(
                f"fields must hold {name!r}, which {owner} uses",
                f"{sorted(columns)}",
                "Pass its column.",
            )
    return {name: columns[name] for name in wanted}


def codes_of(
    levels: Mapping[str, FieldLevels], columns: FieldArrays, owner: str
) -> dict[str, NDArray[np.intp]]:
    """Return the codes of each field that has levels; refuse to go without its column."""
    chosen = chosen_fields(columns, list(levels), owner)
    return {name: levels[name].codes(column) for name, column in chosen.items()}


def _as_numbers(column: NDArray[Any]) -> NDArray[Any] | None:
    if column.dtype.kind in "iub":
        return column.astype(np.int64)
    if column.dtype.kind == "f":
        return column.astype(np.float64)
    return None


def _as_texts(column: NDArray[Any]) -> list[str | None]:
    listed = column.tolist()
    return [v if type(v) is str else None if is_missing(v) else str(v) for v in listed]


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
        require_shape(f"fields[{name!r}]", column, n)
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
