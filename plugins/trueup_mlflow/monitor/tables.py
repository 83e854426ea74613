"""Tables of batches and labels: read, checked and hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import timestamp
from pyarrow.compute import local_timestamp
from pyarrow.types import is_timestamp

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import finite_vector
from trueup_mlflow.monitor.store import ROW_ID
from trueup_mlflow.write.reasons import reason_of


def read_table(
    source: Any, *, columns: Sequence[str | None] = (), row_id: str | None = None
) -> pd.DataFrame:
    """Return a data frame as it is, collect one of Spark, or read a parquet or CSV file.

    Of a Spark data frame only ``columns`` are collected, or all if none are named, in the order of
    ``row_id``: Spark gives rows in any order, and the same batch must be the same.

    Raises
    ------
    InvalidInputError
        If the file is of another kind or cannot be read, or a Spark data frame has no row id.
    """
    if isinstance(source, pd.DataFrame):
        return source
    if is_spark_frame(source):
        return _collected(source, columns, row_id)
    path = Path(source)
    if path.suffix not in (".parquet", ".csv", ".gz"):
        raise InvalidInputError(
            f"file must end in .parquet, .csv or .csv.gz; got {path.name!r}. Convert it."
        )
    if not path.exists():
        raise InvalidInputError(f"file must exist; got {str(path)!r}. Check the path.")
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as failure:
        raise InvalidInputError(
            f"file must be readable; got {str(path)!r}: {reason_of(failure)}. Check its format."
        ) from failure


def is_spark_frame(source: Any) -> bool:
    """Return whether the source is a data frame of Spark, which is not imported for that."""
    return not isinstance(source, str | Path) and hasattr(source, "mapInArrow")


def quoted(name: str) -> str:
    """Return the name of a column as Spark's SQL takes it, with dots and spaces."""
    return "`" + name.replace("`", "``") + "`"


def _collected(frame: Any, columns: Sequence[str | None], row_id: str | None) -> pd.DataFrame:
    if row_id is None or row_id not in frame.columns:
        raise InvalidInputError(
            f"row_id must be a column of a Spark data frame, whose rows have no order; got "
            f"{row_id!r}. Give init a row id."
        )
    names = [name for name in frame.columns if name in columns or not columns]
    table = frame.select(*map(quoted, names)).toArrow().sort_by(row_id)
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    local = [_local_time(column, zone) for column in table.columns]
    rows: pd.DataFrame = table.from_arrays(local, names=names).to_pandas()
    return rows


def _local_time(column: Any, zone: str) -> Any:
    """Return instants as the times that Spark shows; a file would hold these."""
    if not is_timestamp(column.type) or column.type.tz is None:
        return column
    return local_timestamp(column.cast(timestamp(column.type.unit, tz=zone)))


def row_ids(table: pd.DataFrame, column: str | None) -> pd.Series:
    """Return the column that identifies a row, or the positions."""
    if column is None:
        return pd.Series(np.arange(len(table)))
    if column not in table:
        raise InvalidInputError(
            f"batch must have the row id column {column!r}; got {list(table.columns)}. Add it."
        )
    return table[column].reset_index(drop=True)


def late_labels(table: pd.DataFrame, row_id: str | None, target: str) -> pd.DataFrame:
    """Return row ids and labels, one of each row."""
    if row_id is None:
        raise InvalidInputError(
            "row_id must have been given to init to join labels; got None. Run init with row_id."
        )
    missing = [name for name in (row_id, target) if name not in table]
    if missing:
        raise InvalidInputError(
            f"labelled must have the columns {row_id!r} and {target!r}; got none of {missing}. "
            "Add them."
        )
    labels = table[[row_id, target]].set_axis([ROW_ID, "label"], axis=1).dropna()
    labels["label"] = finite_vector("labelled", labels["label"])
    repeated = labels[ROW_ID].duplicated()
    if repeated.any():
        raise InvalidInputError(
            f"labelled must have one label for each row id; got two for "
            f"{labels[ROW_ID][repeated].iloc[0]}. Drop the repeats."
        )
    return labels


def joined(predictions: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a batch that have a label.

    Raises
    ------
    InvalidInputError
        If row ids are of another type here and there.
    """
    try:
        return predictions.merge(labels, on=ROW_ID)
    except ValueError as failure:
        kinds = f"{labels[ROW_ID].dtype}, {predictions[ROW_ID].dtype} in the batch"
        raise InvalidInputError(
            f"labelled must have row ids of the type that the batch had; got {kinds}. Convert them."
        ) from failure


def digest_of(features: pd.DataFrame, prediction: np.ndarray[Any, Any], ids: pd.Series) -> str:
    """Return the hash that says which batch this is."""
    hashed = pd.util.hash_pandas_object(
        features.reset_index(drop=True).assign(_id=ids, _prediction=prediction), index=False
    )
    return hashlib.blake2b(hashed.to_numpy().tobytes(), digest_size=8).hexdigest()
