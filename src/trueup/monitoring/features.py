"""Features of any kind as standardised numbers.

Numbers keep their value, missing ones become the median and an indicator. Categories become one
column per frequent level and one for all others. Of dates only the place in the day, week and year
is kept: the date itself moves forward for ever, and each batch would lie outside of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays
from trueup.errors import InvalidInputError, NotFittedError
from trueup.monitoring.inputs import (
    FAR,
    LARGEST,
    FloatArray,
    Kind,
    as_table,
    column_values,
    finite_vector,
    is_missing,
    kind_of,
    named_columns,
    numbers_of,
)
from trueup.monitoring.storage import finite, text, untext
from trueup.monitoring.trust.support import sample_positions

MAX_LEVELS = 20
PART_ROWS = 65_536
_MISSING = "<missing>"
_CYCLES = (86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0)  # day, week and year in seconds


@dataclass(frozen=True)
class Column:
    """How one column is encoded."""

    name: str
    kind: Kind
    fill: float = 0.0
    has_missing: bool = False
    levels: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        if self.kind == "number":
            return 1 + self.has_missing
        return 2 * len(_CYCLES) + 1 if self.kind == "date" else len(self.levels) + 1


class FeatureEncoder:
    """Encoder of a 2-D array or a data frame (pandas, polars) into standardised float64 columns.

    Mean and standard deviation are those of the fitted rows, as the paper scales them. Levels that
    were never seen fall into the column of other levels, so new data never fail here.
    """

    def __init__(self) -> None:
        self._columns: tuple[Column, ...] = ()
        self._mean: FloatArray = np.zeros(0)
        self._scale: FloatArray = np.zeros(0)

    def fit(self, X: Any) -> FeatureEncoder:
        """Learn kinds, fills, levels and scales from X of shape (n, d)."""
        named = named_columns(X)
        self._columns = tuple(_describe(name, column_values(c)) for name, c in named.items())
        raw = self._raw(named, 0)
        self._mean = raw.mean(axis=0)
        scale = raw.std(axis=0)
        self._scale = np.where(scale > 1e-9 * np.maximum(1.0, np.abs(self._mean)), scale, 1.0)
        return self

    def transform(self, X: Any, *, first_row: int = 0) -> FloatArray:
        """Return the encoded rows, (n, width); ``first_row`` is the place of the first in thebatch.

        Refused are a column that is missing or has changed its kind, and infinite numbers.
        """
        if not self._columns:
            raise NotFittedError("encoder must be fitted", "no fit", "Call fit first.")
        encoded = self._raw(named_columns(X), first_row)
        with np.errstate(over="ignore"):  # what has become infinite is cut like all that is far
            encoded -= self._mean  # in place: a large table is held once
            encoded /= self._scale
        return np.clip(encoded, -FAR, FAR, out=encoded)

    def far_columns(self, X: Any) -> tuple[str, ...]:
        """Return the columns with numbers that :meth:`transform` cuts."""
        named, first, found = named_columns(X), 0, []
        for column in self._columns:
            mean, scale = self._mean[first], self._scale[first]
            if column.kind == "number" and _reaches(named[column.name], mean, FAR * scale):
                found.append(column.name)
            first += column.width
        return tuple(found)

    def novelties(self, X: Any) -> tuple[str, ...]:
        """Return what the fitted rows never showed: new levels and newly missing numbers."""
        named = named_columns(X)
        found = (_novelty(c, column_values(named[c.name])) for c in self._columns)
        return tuple(sentence for sentence in found if sentence)

    def to_arrays(self) -> Arrays:
        columns = text([asdict(column) for column in self._columns])
        return {"columns": columns, "mean": self._mean, "scale": self._scale}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FeatureEncoder:
        encoder = cls()
        encoder._columns = tuple(_stored_column(entry) for entry in untext(arrays["columns"]))
        encoder._mean, encoder._scale = finite(arrays["mean"], 1), finite(arrays["scale"], 1)
        width = sum(column.width for column in encoder._columns)
        if not (len(encoder._mean) == len(encoder._scale) == width > 0 < encoder._scale.min()):
            raise ValueError(f"mean and scale of {width} columns expected")
        return encoder

    @property
    def width(self) -> int:
        return len(self._mean)

    def _raw(self, named: dict[str, Any], first_row: int) -> FloatArray:
        missing = [column.name for column in self._columns if column.name not in named]
        if missing or len(named) != len(self._columns):
            raise InvalidInputError(
                f"X must have the {len(self._columns)} columns of the reference",
                f"{len(named)}, without {missing}",
                "Pass the same features as in fit.",
            )
        encoded = [
            _encode(column, column_values(named[column.name]), first_row)
            for column in self._columns
        ]
        return np.column_stack(encoded)


def _stored_column(entry: Any) -> Column:
    """Return a column of a stored encoder; a ValueError if it is none."""
    column = Column(**{**entry, "levels": tuple(entry["levels"])})
    texts = (column.name, *column.levels)
    if (
        column.kind not in get_args(Kind)
        or not all(isinstance(text, str) for text in texts)
        or len(column.levels) > MAX_LEVELS
        or type(column.has_missing) is not bool
        or not np.isfinite(float(column.fill))
    ):
        raise ValueError("the description of a column expected")
    return column


def _reaches(column: Any, mean: float, distance: float) -> bool:
    """Say whether a number of a column is farther from the mean than that."""
    values = column_values(column)
    numbers = numbers_of("", values, is_missing(values))
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((np.abs(numbers - mean) > distance).any())


def _describe(name: str, values: NDArray[Any]) -> Column:
    kind, missing = kind_of(values), is_missing(values)
    if kind == "number":
        numbers = numbers_of(name, values, missing)
        _require_range(name, numbers)
        fill = float(np.median(numbers[~missing])) if not missing.all() else 0.0
        return Column(name, kind, fill=fill, has_missing=bool(missing.any()))
    if kind == "date":
        return Column(name, kind, has_missing=bool(missing.any()))
    levels, counts = np.unique(_levels(values, missing), return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    return Column(name, kind, levels=tuple(str(level) for level in levels[frequent]))


def _encode(column: Column, values: NDArray[Any], first_row: int) -> FloatArray:
    missing = is_missing(values)
    if column.kind == "number":
        numbers = numbers_of(column.name, values, missing, first_row)
        filled = np.where(missing, column.fill, numbers)
        return np.column_stack([filled, missing]) if column.has_missing else filled[:, None]
    if column.kind == "date":
        return _calendar(column, values, missing)
    levels = _levels(values, missing)
    indicators = levels[:, None] == np.array(column.levels)
    return np.column_stack([indicators, ~indicators.any(axis=1)]).astype(np.float64)


def _require_range(name: str, numbers: FloatArray) -> None:
    """Refuse numbers of a reference that nothing could be standardised by."""
    wrong = np.abs(numbers) > LARGEST
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(
            f"X must lie between {-LARGEST:g} and {LARGEST:g} in column {name!r} of the reference",
            f"{numbers[index]} at index {index}",
            "Repair the value, or leave it missing.",
        )


def _levels(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.str_]:
    return np.where(missing, _MISSING, values.astype(str)).astype(str)


def _calendar(column: Column, values: NDArray[Any], missing: NDArray[np.bool_]) -> FloatArray:
    if values.dtype.kind != "M":
        raise InvalidInputError(
            f"X must hold dates in column {column.name!r} as the reference does",
            str(values.dtype),
            "Convert it to datetime64.",
        )
    seconds = np.where(missing, np.datetime64(0, "s"), values).astype("datetime64[s]").astype(float)
    turns = 2.0 * np.pi * seconds[:, None] / np.array(_CYCLES)
    return np.column_stack([np.sin(turns), np.cos(turns), missing]).astype(np.float64)


def _novelty(column: Column, values: NDArray[Any]) -> str:
    missing = is_missing(values)
    if column.kind == "category":
        unseen = np.setdiff1d(_levels(values, missing), column.levels)
        if len(unseen) and len(column.levels) < MAX_LEVELS:
            names = [str(level) for level in unseen[:3]]
            return f"column {column.name!r} has levels that the reference never had: {names}"
        return ""
    if missing.any() and not column.has_missing:
        return f"column {column.name!r} has missing values that the reference never had"
    return ""


Judge = Callable[[FloatArray, FloatArray], FloatArray]


class Batch:
    """Features and finite predictions of m operational rows, never held encoded as a whole."""

    def __init__(self, encoder: FeatureEncoder, X: Any, y_pred: Any) -> None:
        self._encoder = encoder
        self._table = as_table(X)
        self.y_pred = finite_vector("y_pred", y_pred, len(self._table))

    def __len__(self) -> int:
        return len(self.y_pred)

    def sample(self, size: int, random_state: int) -> FloatArray:
        """Return ``size`` encoded rows drawn without replacement, or all if there are fewer."""
        positions = sample_positions(len(self), size, random_state)
        return self._encoder.transform(_take(self._table, positions))

    def rows(self, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
        """Return what each judge says of each row, shape (m,); each part is encoded once."""
        found = {name: np.empty(len(self)) for name in judges}
        for first in range(0, len(self), PART_ROWS):
            part = slice(first, first + PART_ROWS)
            x = self._encoder.transform(_take(self._table, part), first_row=first)
            for name, judge in judges.items():
                found[name][part] = judge(x, self.y_pred[part])
        return found

    def far_columns(self) -> tuple[str, ...]:
        return self._encoder.far_columns(self._table)

    def novelties(self) -> tuple[str, ...]:
        return self._encoder.novelties(self._table)


def _take(table: Any, rows: Any) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
