"""The hook on scikit-learn's metric functions: it sees each call and changes none.

Each public metric function is a validating wrapper around the function that computes. The hook
replaces the inner function in the closure of the wrapper, so that it also sees calls through names
that were bound earlier, and leaves the attribute of the module free for MLflow's own patches.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from trueup_mlflow.autologging.scored import Scored, snapshot

Record = Callable[[Scored], None]
Arguments = Mapping[str, Any]
Reader = Callable[[Arguments, float], "Scored | None"]

_INNER = "func"  # the free variable of scikit-learn's wrapper that holds the inner function


class UnknownInsideError(Exception):
    """A metric function is not the wrapper that the hook knows."""


def read_log_loss(arguments: Arguments, value: float) -> Scored | None:
    """Return what ``log_loss`` was called with; None for a sum over the rows."""
    if not arguments.get("normalize", True):
        return None
    probability = arguments.get("y_proba")
    if probability is None:
        probability = arguments["y_pred"]  # the name before scikit-learn 1.9
    labels = arguments.get("labels")
    return _scored("log_loss", value, arguments, probability, labels=_sorted(labels))


def read_brier_score(arguments: Arguments, value: float) -> Scored | None:
    """Return what ``brier_score_loss`` was called with; None for another scale than its own."""
    if arguments.get("scale_by_half", "auto") != "auto":
        return None
    probability = arguments.get("y_proba")
    if probability is None:
        probability = arguments["y_prob"]  # the name before scikit-learn 1.7
    labels = _sorted(arguments.get("labels"))
    positive = arguments.get("pos_label")
    if positive is not None and np.ndim(probability) == 1:
        labels = _positive_last(arguments["y_true"], positive)
    return _scored("brier_score", value, arguments, probability, labels=labels)


def read_mean_squared_error(arguments: Arguments, value: float) -> Scored | None:
    """Return what ``mean_squared_error`` was called with; None for several outputs."""
    return _squared_error(arguments, value, root=math.sqrt(value))


def read_root_mean_squared_error(arguments: Arguments, value: float) -> Scored | None:
    """Return what ``root_mean_squared_error`` was called with, as the square of its value."""
    return _squared_error(arguments, value * value, root=value)


READERS: Mapping[str, Mapping[str, Reader]] = {
    "sklearn.metrics._classification": {
        "log_loss": read_log_loss,
        "brier_score_loss": read_brier_score,
    },
    "sklearn.metrics._regression": {
        "mean_squared_error": read_mean_squared_error,
        "root_mean_squared_error": read_root_mean_squared_error,
    },
}
"""The functions that are hooked, by the module that defines them."""


def hook_module(
    module: ModuleType, record: Record, on_failure: Callable[[Exception], None]
) -> Callable[[], None]:
    """Watch the metric functions of a module of ``READERS``, all or none; return what undoes it.

    ``on_failure`` takes what went wrong in reading a call; the call itself goes on.

    Raises UnknownInsideError if a function is not the wrapper that the hook knows; nothing is
    hooked then.
    """
    readers = READERS[module.__name__]
    cells = {name: _inner_cell(getattr(module, name, None), name) for name in readers}
    inner = {name: cell.cell_contents for name, cell in cells.items()}
    for name, cell in cells.items():
        cell.cell_contents = _watched(inner[name], readers[name], record, on_failure)

    def unhook() -> None:
        for name, cell in cells.items():
            cell.cell_contents = inner[name]

    return unhook


def _inner_cell(wrapper: Any, name: str) -> CellType:
    """Return the cell of the inner function, looking through wrappers that others put around."""
    while isinstance(wrapper, FunctionType):
        for variable, cell in zip(
            wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True
        ):
            if variable == _INNER and isinstance(cell.cell_contents, FunctionType):
                return cell
        wrapper = getattr(wrapper, "__wrapped__", None)
    raise UnknownInsideError(f"sklearn.metrics.{name} is not the wrapper that is known")


def _watched(
    function: Callable[..., Any],
    reader: Reader,
    record: Record,
    on_failure: Callable[[Exception], None],
) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        try:
            if isinstance(value, (float, np.floating)):
                scored = reader(signature.bind(*args, **kwargs).arguments, float(value))
                if scored is not None:
                    record(scored)
        except Exception as failure:  # the user's metric has been computed and is returned
            on_failure(failure)
        return value

    return watched


def _scored(
    loss: str,
    value: float,
    arguments: Arguments,
    prediction: Any,
    labels: tuple[Any, ...] | None = None,
) -> Scored:
    weight = arguments.get("sample_weight")
    return Scored(
        loss=loss,
        value=value,
        y_true=snapshot(arguments["y_true"]),
        y_pred=snapshot(prediction),
        sample_weight=None if weight is None else snapshot(weight),
        labels=labels,
    )


def _squared_error(arguments: Arguments, value: float, root: float) -> Scored | None:
    scored = _scored("mean_squared_error", value, arguments, arguments["y_pred"])
    return None if scored.y_pred.ndim == 2 else replace(scored, root=root)


def _sorted(labels: Any) -> tuple[Any, ...] | None:
    return None if labels is None else tuple(np.unique(np.asarray(labels)).tolist())


def _positive_last(y_true: Any, positive: Any) -> tuple[Any, ...]:
    others = [label for label in np.unique(np.asarray(y_true)).tolist() if label != positive]
    return (*others, positive)
