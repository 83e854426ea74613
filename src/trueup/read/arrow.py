"""Columns of Arrow batches as what a summary is updated with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa


def array_of_column(batch: pa.RecordBatch, name: str) -> NDArray[Any]:
    """Return the values of a column.

    Raises
    ------
    InvalidInputError
        If a value is missing.
    """
    column = batch.column(name)
    if column.null_count:
        index = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
        raise InvalidInputError(
            f"column {name!r} must not hold missing values; got one at index {index}. "
            "Drop or fix the row."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))


def levels_of_column(batch: pa.RecordBatch, name: str) -> Any:
    """Return the levels as pandas categories, which need no Python object for each row."""
    column = batch.column(name)
    if "float" in str(column.type) or "double" in str(column.type):  # NaN is no category
        return column.to_numpy(zero_copy_only=False)
    return column.dictionary_encode().to_pandas()
