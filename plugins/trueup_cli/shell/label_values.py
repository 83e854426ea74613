"""The classes that ``--label`` names, in the type of the column: a shell writes text only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def label_values(labels: Sequence[str], y_true: NDArray[Any]) -> list[Any] | None:
    """Return the classes as the values of a column; None where no class was named.

    Raises
    ------
    InvalidInputError
        If the column holds numbers or truth values, and a label is none.
    """
    if not labels:
        return None
    if y_true.dtype.kind == "b":
        return _truth_values(labels)
    if y_true.dtype.kind not in "iuf":
        return list(labels)
    try:
        return [float(label) for label in labels]
    except ValueError:
        found = ", ".join(f"{value:g}" for value in np.unique(y_true)[:5])
        raise InvalidInputError(
            "labels must be numbers, as the column of the labels is",
            repr(list(labels)),
            f"It holds {found}.",
        ) from None


def _truth_values(labels: Sequence[str]) -> list[bool]:
    try:
        return [_TRUTH[label.lower()] for label in labels]
    except KeyError:
        raise InvalidInputError(
            "labels must be true and false, as the column of the labels holds",
            repr(list(labels)),
            "Pass labels=[negative, positive] of these.",
        ) from None
