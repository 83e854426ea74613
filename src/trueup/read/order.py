"""The columns of one call in one order: pandas' indexes are looked at, class columns are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trueup.errors import InvalidInputError
from trueup.read.columns import as_array
from trueup.read.frames import class_columns
from trueup.user_warning import warn_user

_PREDICTIONS = ("y_pred", "y_proba", "y_logit")


def by_position(
    columns: Mapping[str, Any],
    *,
    labels: Sequence[Any] | None = None,
    others: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the columns of a call such that position alone pairs their rows and classes.

    Parameters
    ----------
    columns : mapping of str to array-like
        Labels, predictions, weights and ids, by argument.
    labels : sequence, optional
        The classes in their order.
    others : mapping of str to array-like, optional
        Further columns of the call, whose indexes are looked at only.

    Raises
    ------
    InvalidInputError
        If two indexes of pandas hold the same labels in another order, or a frame's columns name
        other classes than ``labels``.
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
