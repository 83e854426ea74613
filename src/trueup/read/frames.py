"""Data frames of pandas, polars and pyarrow: their columns by name, and classes by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trueup.errors import InvalidInputError
from trueup.read.columns import as_array
from trueup.user_warning import warn_user

_SHOWN = 20


def require_columns(wanted: Iterable[str], present: Sequence[str], source: object) -> None:
    """Refuse a table that lacks a column, or has one twice.

    The refusal names the column that differs by blanks or case only, where there is one.
    """
    for name in wanted:
        count = present.count(name)
        if count > 1:
            raise InvalidInputError(
                f"column {name!r} must be in {source} once",
                f"it {count} times",
                "Rename one of them.",
            )
        if count == 0:
            shown = ", ".join(present[:_SHOWN])
            more = "" if len(present) <= _SHOWN else f" and {len(present)} in all"
            raise InvalidInputError(
                f"column {name!r} must be in {source}",
                f"{shown}{more}",
                f"{_suggestion(name, present)}",
            )


def _suggestion(name: str, present: Sequence[str]) -> str:
    alike = next((other for other in present if _bare(other) == _bare(name)), None)
    return "Check the spelling." if alike is None else f"Did you mean {alike!r}?"


def _bare(name: str) -> str:
    return "".join(name.split()).casefold()


def names_of(frame: Any) -> list[Any] | None:
    """Return the names of a frame's columns, all different; None of anything else."""
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

    Those are sorted by default, and must be the classes that the columns name. What has no names of
    columns is returned as it is.
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


_PREDICTIONS = ("y_pred", "y_proba", "y_logit")


def by_position(
    columns: Mapping[str, Any],
    *,
    labels: Sequence[Any] | None = None,
    others: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the columns of a call such that position alone pairs their rows and classes.

    Refused are two indexes of pandas that hold the same labels in another order, and a frame whose
    columns name other classes than ``labels``.
    """
    given = dict(columns)
    if not others and all(v is None or type(v) is np.ndarray for v in given.values()):
        return given
    require_one_order({**given, **(others or {})})
    for name, values in given.items():
        if name in _PREDICTIONS:
            given[name] = class_columns(values, name, labels, given.get("y_true"))
        if hasattr(given[name], "iloc"):  # looked at once is enough
            given[name] = as_array(given[name], name)
    return given


def require_one_order(columns: Mapping[str, Any]) -> None:
    """Refuse indexes that are labels in another order; warn where one is the plain RangeIndex."""
    indexes: dict[str, Any] = {}
    for name, values in columns.items():
        index = values.index if hasattr(values, "iloc") else None
        if index is not None and not any(index is other for other in indexes.values()):
            indexes[name] = index
    for (first, one), (second, other) in combinations(indexes.items(), 2):
        if len(one) != len(other) or one.equals(other) or not _is_permutation(one, other):
            continue
        if not (_is_plain(one) or _is_plain(other)):
            raise InvalidInputError(
                f"{second} must have its rows in the order of {first}",
                "indexes that hold the same labels in another order",
                (
                    f"Pass {second}.loc[{first}.index] to pair rows by label, or .to_numpy() of "
                    "both to pair them by position."
                ),
            )
        warn_user(
            f"{first} and {second} have the same index labels in another order, one of them as "
            "plain row numbers: rows are paired by position. Pass .to_numpy() to say that it is "
            f"meant, or {second}.loc[{first}.index] to pair them by label.",
        )


def _is_plain(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _is_permutation(one: Any, other: Any) -> bool:
    try:
        return bool(one.sort_values().equals(other.sort_values()))
    except TypeError:  # labels of several types have no order
        return bool(one.isin(other).all() and other.isin(one).all())
