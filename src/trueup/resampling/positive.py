"""Which of two classes is the positive one: what depends on it gets no guess."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.read.columns import plain_numbers, refuse_rows

Array = NDArray[Any]


def says_positive(y: Array) -> bool:
    """Say whether labels are 0 and 1, or False and True, so that no name has to be given."""
    values = plain_numbers(y)
    return values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def check_positive(measure: str, y: Array, fix: str) -> None:
    """Refuse two classes of other names for a measure that depends on which is positive."""
    names = [] if says_positive(y) else sorted({repr(value) for value in y.tolist()})
    if len(names) == 2:
        raise InvalidInputError(
            f"y must be 0 and 1, 1 for the positive class, as {measure} depends on which it is",
            " and ".join(names),
            fix,
        )


def check_labels(y: Array, labels: Sequence[Any]) -> Array:
    """Return the classes in the order of the columns, the positive one last, checked."""
    classes = np.asarray(labels)
    if classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) < len(classes):
        raise InvalidInputError(
            "labels must name each class of y once, the positive one last",
            repr(labels),
            "Pass [negative, positive].",
        )
    refuse_rows(~np.isin(y, classes), y, f"y must be one of {classes.tolist()}", "Fix labels=.")
    return classes


def takes_positive(function: Callable[..., Any], given: Mapping[str, Any]) -> bool:
    """Say whether a metric in scikit-learn's grammar takes 1 as positive, for want of a word.

    ``given`` are keywords that it is called with; an average over classes needs none.
    """
    while isinstance(function, partial):
        given = {**function.keywords, **given}
        function = function.func
    try:
        positive = inspect.signature(function).parameters.get("pos_label")
    except (TypeError, ValueError):  # of what is written in C
        return False
    unsaid = positive is not None and positive.default == 1 and "pos_label" not in given
    return unsaid and given.get("average", "binary") == "binary"
