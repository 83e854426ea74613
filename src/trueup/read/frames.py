"""Data frames of pandas, polars and pyarrow: their columns by name, and classes by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueup.errors import InvalidInputError
from trueup.read.columns import as_array


def names_of(frame: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None of anything else.

    Raises
    ------
    InvalidInputError
        If two columns have one name.
    """
    columns = getattr(frame, "column_names", None)  # of pyarrow
    if columns is None and hasattr(frame, "shape") and len(frame.shape) == 2:
        columns = getattr(frame, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(
            f"column {twice[0]!r} must be in the data frame once",
            f"it {names.count(twice[0])} times",
            "Rename one of them.",
        )
    return names


def columns_of(fields: Any) -> Any:
    """Return a frame as a mapping of names to columns, and a mapping as it is."""
    names = names_of(fields)
    if names is None or isinstance(fields, Mapping):
        return fields
    return {name: fields[name] for name in names}


def class_columns(values: Any, name: str, labels: Sequence[Any] | None, y_true: Any) -> Any:
    """Return predictions with the columns of named classes in the order of the labels.

    Parameters
    ----------
    values : Any
        Predictions; what has no names of columns is returned as it is.
    name : str
        What messages call them.
    labels : sequence, optional
        The classes in their order; the sorted labels by default.
    y_true : Any
        Labels.

    Raises
    ------
    InvalidInputError
        If ``labels`` names other classes than the columns do, or a name is there twice.
    """
    names = names_of(values)
    if names is None or len(names) < 2 or _are_positions(values, names):
        return values
    classes = _sorted_labels(y_true) if labels is None else list(labels)
    position = {_text(column): i for i, column in enumerate(names)}
    wanted = [_text(label) for label in classes]
    if set(wanted) == set(position) and len(wanted) == len(position):
        return as_array(values, name)[:, [position[label] for label in wanted]]
    if labels is None:
        return values
    raise InvalidInputError(
        f"{name} must have a column for each class of labels, {classes}",
        str(names),
        "Rename the columns, or pass .to_numpy() if they are in the order of labels.",
    )


def _are_positions(values: Any, names: list[Any]) -> bool:
    """Say whether names are those that a library gives columns without one."""
    columns = getattr(values, "columns", None)
    if type(columns).__name__ == "RangeIndex":  # pandas' own, and any whole numbers in a row
        return names == list(range(len(names)))
    return names == [f"column_{i}" for i in range(len(names))]


def _sorted_labels(y_true: Any) -> list[Any]:
    try:
        return list(np.unique(as_array(y_true, "y_true", may_miss=True)))
    except TypeError:  # missing labels, which are refused in their turn
        return []


def _text(label: Any) -> str:
    """Return the text of a class: a column "1" is that of the labels 1 and 1.0."""
    is_whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if is_whole else str(label)
