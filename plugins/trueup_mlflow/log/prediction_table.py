"""The arguments of ``evaluate`` as one Arrow table, and back: pure, without MLflow.

Columns hold the rows, the schema's metadata holds the options as JSON, so that nothing is unpickled
or executed when a table is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.read.columns import as_array, column, plain_numbers
from trueup.read.frames import by_position, columns_of
from trueup.read.ids import id_column, read_ids
from trueup.read.times import read_times
from trueup.redact import without_credentials
from trueup.splits import CrossFit, Split
from trueup.splits.assignment import parse_split

_METADATA_KEY = b"trueup"
_FORMAT = 1
_ROW_COLUMNS = ("row_id", "times", "sample_weight")
_FIELD = "field."
_DEFAULT_SPLIT = CrossFit()
_LONG_UNITS = ("Y", "M", "W", "D", "h", "m")


@dataclass(frozen=True)
class Place:
    """Where in a run the result of a table belongs."""

    prefix: str  # put before the loss in the keys
    # step and time (milliseconds since 1970) of the metrics
    step: int
    timestamp: int
    # LoggedModel and data set of the metrics
    model_id: str | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


@dataclass(frozen=True)
class StoredCall:
    """A call of ``evaluate`` that was read from a table, and where its result belongs."""

    arguments: Mapping[str, Any]
    place: Place


def write_call(
    y_true: Any,
    y_pred: Any,
    place: Place,
    *,
    loss: str = "log_loss",
    y_logit: Any = None,
    split: Split = _DEFAULT_SPLIT,
    labels: Sequence[Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    **row_columns: Any,
) -> pa.Table:
    """Return a table from which :func:`read_call` makes the same call of ``evaluate``."""
    fields = columns_of(fields)
    given = {"y_true": y_true, "y_pred": y_pred, "y_logit": y_logit}
    given |= {name: row_columns.get(name) for name in ("row_id", "sample_weight")}
    others = {"times": row_columns.get("times"), **(fields or {})}
    given = by_position(given, labels=labels, others=others)
    y_true, y_pred, y_logit = given.pop("y_true"), given.pop("y_pred"), given.pop("y_logit")
    if given["row_id"] is not None:
        given["row_id"] = id_column(given["row_id"])
        read_ids(given["row_id"], len(given["row_id"]))  # what can't be read can't be stored
    if row_columns.get("times") is not None:
        given["times"] = read_times(row_columns["times"])
    columns = {
        "y_true": column(y_true, "y_true"),
        **(_prediction_columns("y_pred", y_pred) if y_logit is None else {}),
        **(_prediction_columns("y_logit", y_logit) if y_pred is None else {}),
        **{name: column(given[name], name) for name in _ROW_COLUMNS if given.get(name) is not None},
        **{
            f"{_FIELD}{name}": column(values, name, may_miss=True)
            for name, values in (fields or {}).items()
        },
    }
    options = {
        "format": _FORMAT,
        "loss": _loss_name(loss),
        "split": _split_text(split),
        "labels": None if labels is None else np.asarray(labels).tolist(),
        "place": json.loads(without_credentials(json.dumps(asdict(place)))),
        # Arrow and parquet know fewer units of time than numpy, and a period is a number of units.
        "times": {name: str(c.dtype) for name, c in columns.items() if c.dtype.kind in "mM"},
    }
    table = pa.table({name: _arrow(values) for name, values in columns.items()})
    return table.replace_schema_metadata({_METADATA_KEY: json.dumps(options).encode()})


def read_call(table: pa.Table) -> StoredCall:
    """Return the call of ``evaluate`` that a table of :func:`write_call` holds."""
    raw = (table.schema.metadata or {}).get(_METADATA_KEY)
    options = {} if raw is None else json.loads(raw)
    if options.get("format") != _FORMAT:
        raise InvalidInputError(
            f"table must hold predictions of format {_FORMAT}",
            f"{options.get('format')}",
            "Log them with trueup_mlflow.log_predictions.",
        )
    names, times = table.column_names, options.get("times", {})

    def column_of(name: str) -> NDArray[Any]:
        values = _numpy(table, name)
        return values.astype(times[name]) if name in times else values

    arguments = {
        "y_true": column_of("y_true"),
        **_prediction(table),
        "loss": options["loss"],
        "split": parse_split(options["split"]),
        "labels": options["labels"],
        **{name: column_of(name) for name in _ROW_COLUMNS if name in names},
        "fields": {
            name.removeprefix(_FIELD): column_of(name) for name in names if name.startswith(_FIELD)
        }
        or None,
    }
    return StoredCall(arguments, Place(**options["place"]))


def _prediction_columns(name: str, values: Any) -> dict[str, NDArray[Any]]:
    array = plain_numbers(as_array(values, name))
    if array.ndim == 1:
        return {name: array}
    return {f"{name}_{index}": array[:, index] for index in range(array.shape[1])}


def _prediction(table: pa.Table) -> dict[str, NDArray[Any]]:
    name = "y_pred" if any(c.startswith("y_pred") for c in table.column_names) else "y_logit"
    if name in table.column_names:
        return {name: _numpy(table, name)}
    n_columns = sum(other.startswith(f"{name}_") for other in table.column_names)
    return {name: np.column_stack([_numpy(table, f"{name}_{i}") for i in range(n_columns)])}


def _arrow(values: NDArray[Any]) -> pa.Array:
    if values.dtype.kind in "OUT":
        values = values.astype(object)
        try:
            return pa.array(values, from_pandas=True)
        except pa.ArrowException:  # levels of several types: their text tells them apart as well
            return pa.array([None if v is None or v != v else str(v) for v in values], pa.string())
    if values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in _LONG_UNITS:
        values = values.astype(f"{values.dtype.kind}8[s]")
    return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))


def _numpy(table: pa.Table, name: str) -> NDArray[Any]:
    return np.asarray(table.column(name).to_numpy())


def _loss_name(loss: object) -> str:
    if not isinstance(loss, str):
        raise InvalidInputError(
            "loss must be the name of a loss to be stored",
            repr(loss),
            "Use log_evaluation for a loss of your own.",
        )
    return loss


def _split_text(split: Split) -> str:
    text = repr(split)
    parse_split(text)
    return text
