"""Tables of batches and labels: read, their row ids checked, and hashed."""

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
from trueup.monitoring.metrics import DEFAULT_METRIC
from trueup.read.files import require_room
from trueup.read.ids import id_texts, is_decimal
from trueup.read.tables import read_file
from trueup_mlflow.monitor.batch.schema import IdKind
from trueup_mlflow.write.failures import reason_of


def read_table(
    source: Any,
    *,
    columns: Sequence[str | None] = (),
    row_id: str | None = None,
    kind: IdKind | None = None,
) -> pd.DataFrame:
    """Return a data frame as it is, collect one of Spark, or read a parquet or CSV file.

    Of a Spark data frame only ``columns`` are collected, or all if none are named, in the order of
    ``row_id``: Spark gives rows in any order, and the same batch must be the same. Row ids of a CSV
    file stay the text that is written there, "00420" too, unless the reference has integers.

    Raises InvalidInputError if the file is of another kind or cannot be read, or a Spark data frame
    has no row id.
    """
    if isinstance(source, pd.DataFrame):
        return source
    if is_spark_frame(source):
        return _collected(source, columns, row_id)
    path = Path(source)
    if path.suffix.lower() not in (".parquet", ".csv", ".gz"):
        raise InvalidInputError(
            "file must end in .parquet, .csv or .csv.gz", repr(path.name), "Convert it."
        )
    if not path.exists():
        raise InvalidInputError("file must exist", repr(str(path)), "Check the path.")
    try:
        return _parquet(path) if path.suffix.lower() == ".parquet" else _csv(path, row_id, kind)
    except InvalidInputError:
        raise
    except Exception as failure:  # each reader has its own for a file that is broken
        raise InvalidInputError(
            "file must be readable", f"{str(path)!r}: {reason_of(failure)}", "Check its format."
        ) from failure


def require_column(table: Any, name: str | None, argument: str) -> None:
    """Refuse a name of a column that a batch, of pandas or of Spark, does not have."""
    if name not in table.columns:
        rule = f"{argument} must be a column of the batch"
        raise InvalidInputError(rule, repr(name), "Check the spelling.")


def is_spark_frame(source: Any) -> bool:
    """Return whether the source is a data frame of Spark, which is not imported for that."""
    return not isinstance(source, str | Path) and hasattr(source, "mapInArrow")


def quoted(name: str) -> str:
    """Return the name of a column as Spark's SQL takes it, with dots and spaces."""
    return "`" + name.replace("`", "``") + "`"


def _collected(frame: Any, columns: Sequence[str | None], row_id: str | None) -> pd.DataFrame:
    if row_id is None or row_id not in frame.columns:
        raise InvalidInputError(
            "row_id must be a column of a Spark data frame, whose rows have no order",
            repr(row_id),
            "Give init a row id.",
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


def _parquet(path: Path) -> pd.DataFrame:
    require_room(path)
    table = pd.read_parquet(path)
    exact = [
        name
        for name, column in table.items()
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal"
    ]  # what databases export: numbers to a model, and no text
    return table.astype(dict.fromkeys(exact, "float64"))


def _csv(path: Path, row_id: str | None, kind: IdKind | None) -> pd.DataFrame:
    table: pd.DataFrame = read_file(path, texts=[row_id]).to_pandas()
    if row_id is not None and row_id in table:
        table[row_id] = ids_from_csv(table[row_id], kind)
    return table


def digest_of(
    features: pd.DataFrame,
    prediction: np.ndarray[Any, Any],
    ids: pd.Series | None,
    metric: str = DEFAULT_METRIC,
) -> str:
    """Return the hash that says which batch this is: of its rows, in whatever order.

    A batch is another one where another metric is estimated on it.
    """
    rows = features.reset_index(drop=True).assign(_prediction=prediction)
    rows = rows if ids is None else rows.assign(_id=ids)
    hashed = np.sort(pd.util.hash_pandas_object(rows, index=False).to_numpy())
    person = b"" if metric == DEFAULT_METRIC else metric.encode()[:16]
    return hashlib.blake2b(hashed.tobytes(), digest_size=8, person=person).hexdigest()


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
