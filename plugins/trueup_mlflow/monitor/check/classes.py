"""Labels as numbers: as they are, or 0 and 1 for the two classes of a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.monitoring.inputs import finite_vector, is_binary


def target_classes(labels: pd.Series, known: Sequence[Any]) -> tuple[str, ...]:
    """Return negative and positive class where labels are names or codes; none for numbers.

    There must be two, that the model knows; ``known`` are its classes in its own order, if it has
    any.
    """
    present = labels.dropna()
    numeric = pd.api.types.is_numeric_dtype(present.dtype)
    if numeric and (not known or is_binary(present.to_numpy(dtype=np.float64))):
        return ()
    names = sorted({class_name(value) for value in present.unique()})
    model = [class_name(value) for value in known]
    if len(model) == 2 and set(names) <= set(model):
        return (model[0], model[1])
    if len(names) > 2 or len(model) > 2:
        raise InvalidInputError(
            "target must be numbers, or two classes",
            f"{max(len(names), len(model))} classes",
            (
                "Monitor one of them: a target that is 1 for it and 0 for the others, and the "
                "column of its probability by prediction=."
            ),
        )
    if len(names) == 2 and not model:
        return (names[0], names[1])
    raise InvalidInputError(
        f"target must be numbers, or the two classes of the model, {model}",
        f"{names[:3]}",
        "Name them as the model does.",
    )


def label_numbers(name: str, labels: Any, classes: Sequence[str]) -> NDArray[np.float64]:
    """Return labels as numbers: 1 for the positive class, 0 for the negative one."""
    if not classes:
        return finite_vector(name, labels)
    found = [class_name(value) for value in labels]
    unknown = sorted({one for one in found if one not in classes})
    if unknown:
        raise InvalidInputError(
            f"{name} must be one of the classes {list(classes)}",
            f"{unknown[0]!r} at index {found.index(unknown[0])}",
            "Name them as in the reference.",
        )
    return np.array([one == classes[1] for one in found], dtype=np.float64)


def class_name(value: Any) -> str:
    """Return the name of a class: of 1, 1.0 and "1" the same."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
