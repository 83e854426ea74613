"""Labels that arrive late and in parts: kept beside the batch, joined by the row id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import is_binary
from trueup.monitoring.metrics import metric_of
from trueup.read.ids import id_texts
from trueup_mlflow.monitor.batch.schema import Schema, label_numbers
from trueup_mlflow.monitor.store import PREDICTION, ROW_ID, SEGMENT

LABEL = "label"


@dataclass(frozen=True)
class LateLabels:
    """Labels of rows of any batch, under ids as text, by which tables of any origin join.

    ``missing`` rows of the file had no label or no id, and were skipped.
    """

    rows: pd.DataFrame
    missing: int


def late_labels(table: pd.DataFrame, schema: Schema) -> LateLabels:
    """Return the labels of a table; rows without one are counted and skipped.

    Refused are an id with two labels, and ids or labels of another type than in the reference.
    """
    row_id, target = schema.row_id, schema.target
    if row_id is None:
        raise InvalidInputError(
            "row_id must have been given to init to join labels", "None", "Run init with row_id."
        )
    absent = [name for name in (row_id, target) if name not in table]
    if absent:
        raise InvalidInputError(
            f"labelled must have the columns {row_id!r} and {target!r}",
            f"none of {absent}",
            "Add them.",
        )
    _require_kind(table[row_id], schema)
    labelled = table[[row_id, target]].reset_index(drop=True).dropna()
    present = labelled.drop_duplicates()  # exports overlap
    repeated = present[row_id].duplicated()
    if repeated.any():
        raise InvalidInputError(
            "labelled must have one label for each row id",
            f"two for {present[row_id][repeated].iloc[0]}",
            "Drop the repeats.",
        )
    labels = label_numbers("labelled", present[target], schema.classes, present.index.to_numpy())
    if schema.binary and not is_binary(labels):
        index = int(np.flatnonzero(~np.isin(labels, (0.0, 1.0)))[0])
        raise InvalidInputError(
            f"labelled must have 0 and 1 in {target!r} as the reference had",
            f"{labels[index]:g} for {present[row_id].iloc[index]}",
            "Name the classes as in the reference.",
        )
    keys = id_texts(present[row_id].to_numpy(dtype=object)) if len(present) else np.zeros(0, object)
    return LateLabels(pd.DataFrame({ROW_ID: keys, LABEL: labels}), len(table) - len(labelled))


def merged(kept: pd.DataFrame | None, new: pd.DataFrame) -> pd.DataFrame:
    """Return labels of a batch where later ones correct earlier ones."""
    if kept is None:
        return new
    both = pd.concat([kept, new], ignore_index=True)
    return both.drop_duplicates(ROW_ID, keep="last", ignore_index=True)


def n_corrected(kept: pd.DataFrame, new: pd.DataFrame) -> int:
    """Return how many new labels differ from the ones that they replace."""
    both = kept.merge(new, on=ROW_ID, suffixes=("_kept", "_new"))
    return int((both[f"{LABEL}_kept"] != both[f"{LABEL}_new"]).sum())


def of_batch(predictions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the labels of the rows of a batch."""
    return labels[labels[ROW_ID].isin(set(_keys(predictions)))].reset_index(drop=True)


def realized_error(predictions: pd.DataFrame, labels: pd.DataFrame, metric: str) -> float:
    """Return the error by a metric of the rows of a batch that have a label."""
    keyed = pd.DataFrame({ROW_ID: _keys(predictions), PREDICTION: predictions[PREDICTION]})
    rows = keyed.merge(labels, on=ROW_ID)
    y_true, y_pred = (rows[name].to_numpy(dtype=np.float64) for name in (LABEL, PREDICTION))
    return float(metric_of(metric).of(y_true, y_pred).mean())


def errors_by_level(
    predictions: pd.DataFrame,
    labels: pd.DataFrame,
    levels: pd.DataFrame,
    min_labelled: float,
    metric: str,
) -> dict[str, float]:
    """Return the error by a metric of each level of which enough rows have a label."""
    keyed = levels.assign(**{ROW_ID: _keys(levels)})
    counts = keyed[SEGMENT].value_counts()
    present = keyed[keyed[ROW_ID].isin(set(labels[ROW_ID]))]
    return {
        str(level): realized_error(
            predictions, labels[labels[ROW_ID].isin(set(rows[ROW_ID]))], metric
        )
        for level, rows in present.groupby(SEGMENT)
        if len(rows) >= min_labelled * counts[level]
    }


def _keys(predictions: pd.DataFrame) -> NDArray[np.object_]:
    return id_texts(predictions[ROW_ID].to_numpy(dtype=object))


def _require_kind(ids: pd.Series, schema: Schema) -> None:
    if schema.id_kind is None or ids.isna().any() or not len(ids):
        return
    integer = pd.api.types.is_integer_dtype(ids.dtype)
    if integer != (schema.id_kind == "integer"):
        raise InvalidInputError(
            "labelled must have row ids of the type that the batch had",
            f"{ids.dtype}, {'int64' if schema.id_kind == 'integer' else 'text'} in the batch",
            "Convert them.",
        )
