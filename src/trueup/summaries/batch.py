"""A batch of raw columns, read block by block so that nothing of its size is ever copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trueup._kernels import Engine
from trueup._kernels.hashing import HashRule
from trueup._kernels.plain import PlainRows
from trueup.errors import InvalidInputError
from trueup.fields.columns import require_fields
from trueup.fields.levels import Levels
from trueup.losses import FloatArray, Loss
from trueup.losses.elementary import expit
from trueup.read.columns import as_array, column, read_weight
from trueup.read.ids import read_ids
from trueup.read.rows import Notices, Place, Rows, read_rows
from trueup.summaries.field import FieldSummary, read_whole_levels

Result = TypeVar("Result")


@dataclass(frozen=True)
class Batch:
    """Columns of one update, as arrays that were not looked into yet."""

    columns: Mapping[str, NDArray[Any]]
    levels: Mapping[str, Levels]
    labels: Sequence[Any] | None
    n: int

    @property
    def has_ids(self) -> bool:
        """Whether rows have an id other than their position."""
        return "row_id" in self.columns

    def map_shares(
        self, summarise: Callable[[Sequence[slice]], Result], size: int, threads: int
    ) -> list[Result]:
        """Deal blocks of a size out to threads; return what each makes of its share."""
        blocks = [slice(i, min(i + size, self.n)) for i in range(0, self.n, size)]
        shares = [share for i in range(threads) if (share := blocks[i::threads])]
        if len(shares) == 1:
            return [summarise(blocks)]
        from concurrent.futures import ThreadPoolExecutor  # not loaded for one thread

        with ThreadPoolExecutor(len(shares)) as pool:
            return list(pool.map(summarise, shares))

    def read(self, loss: Loss, block: slice, first_row: int, notices: Notices) -> Rows:
        """Return the checked rows of a block; ``first_row`` is the position of the batch."""
        part: dict[str, Any] = {name: values[block] for name, values in self.columns.items()}
        place = Place(first_row + block.start, notices)
        return read_rows(**part, loss=loss, labels=self.labels, place=place)

    def plain(self, rule: HashRule | None, block: slice, first_row: int) -> PlainRows | None:
        """Return a block unchecked, if it is of the most common form."""
        name = "y_pred" if "y_pred" in self.columns else "y_logit"
        label, prediction = self.columns["y_true"], self.columns[name]
        weight, row_id = self.columns.get("sample_weight"), self.columns.get("row_id")
        if rule is None or self.labels is not None:
            return None
        if not (_is_plain(label) and _is_plain(prediction, "f")):
            return None
        if not (weight is None or _is_plain(weight)) or not (row_id is None or row_id.ndim == 1):
            return None
        n = block.stop - block.start
        return PlainRows(
            label=_contiguous(label[block]),
            prediction=_contiguous(prediction[block]),
            is_logit=name == "y_logit",
            weight=None if weight is None else _contiguous(weight[block]),
            row_id=None if row_id is None else np.ascontiguousarray(read_ids(row_id[block], n)),
            first_row=first_row + block.start,
            rule=rule,
        )

    def add_cells(
        self,
        rows: slice,
        columns: tuple[FloatArray, FloatArray, FloatArray | None],
        fields: Mapping[str, FieldSummary],
        kernels: Engine,
    ) -> None:
        """Add labels, probabilities and weights of some rows to the levels of each field."""
        for name, levels in self.levels.items():
            kernels.add_cells(levels.codes[rows], *columns, fields[name].sums)

    def refuse(self, loss: Loss) -> None:
        """Read the batch as a whole, for an error that names the index in it."""
        columns: dict[str, Any] = dict(self.columns)
        read_rows(**columns, loss=loss, labels=self.labels)


def make_batch(
    loss: Loss,
    labels: Sequence[Any] | None,
    fields: Mapping[str, Any] | None,
    columns: Mapping[str, Any],
) -> Batch:
    """Return a batch whose columns are of equal length; refuse others as ``read_rows`` does."""
    if columns["y_true"] is None:
        raise InvalidInputError("y_true must be given", "None", "Pass the labels.")
    given = {name: as_array(values, name) for name, values in columns.items() if values is not None}
    n = len(column(given["y_true"], "y_true"))
    levels: dict[str, Levels] = {}
    if fields is not None and n:
        require_fields(fields, loss)
        levels = {name: read_whole_levels(values, name, n) for name, values in fields.items()}
    batch = Batch(given, levels, labels, n)
    in_columns = all(values.ndim in (1, 2) and len(values) == n for values in given.values())
    if n and not (in_columns and ("y_pred" in given) != ("y_logit" in given)):
        batch.refuse(loss)
    prediction = given.get("y_pred", given.get("y_logit", given["y_true"]))
    if prediction.ndim == 2 and prediction.shape[1] > 2:
        raise InvalidInputError(
            "predictions must have one column, or two, in a summary",
            f"{prediction.shape[1]}",
            "Use evaluate() on arrays for several classes.",
        )
    if n and "sample_weight" in given and not np.any(given["sample_weight"]):
        read_weight(given["sample_weight"], n)
    return batch


def probability_columns(rows: PlainRows) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return labels, probabilities and weights."""
    return rows.label, expit(rows.prediction) if rows.is_logit else rows.prediction, rows.weight


def _is_plain(values: NDArray[Any], kinds: str = "fiub") -> bool:
    return values.ndim == 1 and values.dtype.kind in kinds and values.dtype.itemsize <= 8


def _contiguous(values: NDArray[Any]) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)
