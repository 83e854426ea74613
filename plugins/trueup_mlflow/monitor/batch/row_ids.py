"""Row ids of batches and labels: of the type that the reference has, each once."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trueup.errors import InvalidInputError
from trueup.read.ids import id_texts, is_decimal
from trueup_mlflow.monitor.batch.schema import IdKind


def id_kind(ids: pd.Series) -> IdKind:
    """Return whether ids are integers or text, none of them missing."""
    if pd.api.types.is_integer_dtype(ids.dtype) and not pd.api.types.is_bool_dtype(ids.dtype):
        return "integer"
    id_texts(ids.to_numpy(dtype=object), "row_id")
    return "text"


def checked_ids(table: pd.DataFrame, column: str | None, kind: IdKind | None) -> pd.Series:
    """Return the ids of a batch's rows, or their positions where ``init`` was given no row id.

    An id must not come twice, nor be of another type than those of the reference.
    """
    if column is None:
        return pd.Series(np.arange(len(table)))
    if column not in table:
        raise InvalidInputError(
            f"batch must have the row id column {column!r}", f"{list(table.columns)}", "Add it."
        )
    ids = table[column].reset_index(drop=True)
    found = id_kind(ids)
    if kind is not None and found != kind:
        raise InvalidInputError(
            f"row ids of the batch must be {_WORDS[kind]} in {column!r} as in the reference",
            str(ids.dtype),
            "Convert them, or no label could be joined.",
        )
    repeated = ids.duplicated()
    if repeated.any():
        raise InvalidInputError(
            "row ids of the batch must differ from row to row",
            f"{ids[repeated].iloc[0]!r} twice",
            "Drop the repeats.",
        )
    return ids


def ids_from_csv(ids: pd.Series, kind: IdKind | None) -> pd.Series:
    """Return ids that a CSV file gave as text as the type of the reference.

    "00420" stays text; without a reference, ids that are all written as integers are integers. An
    empty cell is a missing id.
    """
    ids = ids.mask(ids == "")
    texts = ids.astype("string")
    if kind == "text" or not all(isinstance(t, str) and is_decimal(t) for t in texts):
        return ids
    return texts.astype("int64")


_WORDS: dict[IdKind, str] = {"integer": "integers", "text": "text"}
