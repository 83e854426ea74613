"""Checks of where a result is logged: what MLflow would stumble over is the caller's mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from numbers import Integral
from typing import Any

import trueup
from trueup.arguments import check_keywords
from trueup.errors import InvalidInputError
from trueup_mlflow.write.failures import refusing_only

_LARGEST_STEP = 2**63 - 1


@refusing_only
def check_place(
    *,
    prefix: Any = "",
    step: Any = None,
    run_id: Any = None,
    model_id: Any = None,
    dataset: Any = None,
) -> None:
    """Refuse a prefix, step, id or data set of another type than documented."""
    if not isinstance(prefix, str):
        raise _refusal("prefix", "text", prefix, 'Pass for example prefix="val_".')
    for name, value in (("run_id", run_id), ("model_id", model_id)):
        if value is not None and not isinstance(value, str):
            raise _refusal(name, "text or None", value, "Pass the id that MLflow shows.")
    is_step = isinstance(step, Integral) and not isinstance(step, bool)
    if step is not None and not (is_step and abs(int(step)) <= _LARGEST_STEP):
        raise _refusal("step", "an integer of 64 bits or None", step, "Pass the epoch.")
    names = [getattr(dataset, name, None) for name in ("name", "digest")]
    if dataset is not None and not all(isinstance(name, str) for name in names):
        raise _refusal(
            "dataset", "an MLflow data set", dataset, "Make one with mlflow.data.from_pandas."
        )


def check_options(function: Callable[..., Any], options: Iterable[str]) -> None:
    """Refuse a keyword that neither a function that passes it on nor ``trueup.evaluate`` takes."""
    own = [known for known in signature(function).parameters if known != "options"]
    known = dict.fromkeys([*own, *signature(trueup.evaluate).parameters])
    check_keywords(function.__name__, options, list(known))


def _refusal(name: str, rule: str, value: Any, fix: str) -> InvalidInputError:
    return InvalidInputError(f"{name} must be {rule}", repr(value), fix)
