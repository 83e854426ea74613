"""A model's signature: the columns that it takes, cast as MLflow's serving would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from mlflow.types import DataType

from trueup.errors import InvalidInputError
from trueup_mlflow.monitor.batch.schema import holds_numbers

_INTEGERS: dict[DataType, type[np.int32 | np.int64]] = {
    DataType.integer: np.int32,
    DataType.long: np.int64,
}
_FLOATS = {DataType.float: np.float32, DataType.double: np.float64}


def input_columns(metadata: Any) -> tuple[str, ...]:
    """Return the columns that a signature names; none if there is none, or it has no names."""
    schema = metadata.get_input_schema()
    if schema is None or schema.is_tensor_spec() or not schema.has_input_names():
        return ()
    return tuple(str(column.name) for column in schema.inputs if column.required)


def single_output(pyfunc: Any, names: Sequence[str]) -> str | None:
    """Return the one output that a signature names among the columns, if it names just one."""
    schema = pyfunc.metadata.get_output_schema()
    if schema is None or schema.is_tensor_spec() or not schema.has_input_names():
        return None
    declared = [str(column.name) for column in schema.inputs]
    return declared[0] if len(declared) == 1 and declared[0] in names else None


def as_served(rows: pd.DataFrame, pyfunc: Any) -> pd.DataFrame:
    """Return rows with the types of the signature: the values stay, or the rows are refused.

    Integers become shorter or longer ones and doubles with missing values; whole doubles become
    integers; doubles become floats, as serving does when it reads JSON.
    """
    schema = pyfunc.metadata.get_input_schema()
    if schema is None or schema.is_tensor_spec() or not schema.has_input_names():
        return rows
    kinds = {str(column.name): column.type for column in schema.inputs}
    cast = {
        name: _cast(rows[name], kinds[name])
        for name in map(str, rows.columns)
        if kinds.get(name) in {**_INTEGERS, **_FLOATS}
    }
    return rows.assign(**cast)


def _cast(column: pd.Series, kind: DataType) -> pd.Series:
    if not holds_numbers(column):
        raise _refused(column, kind)
    values = column.astype("float64") if not _is_integer(column) else column
    if kind in _FLOATS:
        return values.astype(_FLOATS[kind])
    target = _INTEGERS[kind]
    if values.isna().any() or not (values == values.round()).all():
        raise _refused(column, kind)
    bounds = np.iinfo(target)
    if len(values) and (values.min() < bounds.min or values.max() > bounds.max):
        raise _refused(column, kind)
    return values.astype(target)


def _is_integer(column: pd.Series) -> bool:
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub"


def _refused(column: pd.Series, kind: DataType) -> InvalidInputError:
    missing = int(column.isna().sum())
    holes = f" with {missing} missing values" if missing else ""
    return InvalidInputError(
        f"column {column.name!r} must be {kind.name} as the model's signature says",
        f"{column.dtype}{holes}",
        "Convert it, or log the model with a signature of doubles.",
    )
