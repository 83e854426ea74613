"""Checks of arguments that many functions share; a value of any type is refused in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeGuard

from trueup.errors import InvalidInputError

LARGEST_FLOAT = sys.float_info.max
"""Integers can be larger, and then no float can be made of them."""


_SAME = (
    "y_pred y_proba y_prob y_score y_hat yhat proba probas prob probs pred preds prediction "
    "predictions",
    "y_logit y_logits logit logits log_odds",
    "sample_weight sample_weights weight weights",
    "row_id row_ids id ids",
    "times time timestamp timestamps",
    "labels label classes",
)
"""What other packages call the columns of a call."""


def check_keywords(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a keyword as Python does, with the one that may have been meant.

    For functions that pass keywords on: Python would name the function that they are passed to.

    Examples
    --------
    >>> check_keywords("score", ["weights"], ["y_proba", "sample_weight"])
    Traceback (most recent call last):
    TypeError: score() got an unexpected keyword argument 'weights'. Did you mean 'sample_weight'?
    """
    for name in given:
        if name not in known:
            others = next((words.split() for words in _SAME if name in words.split()), [])
            near = [word for word in known if word in others] or get_close_matches(name, known, n=1)
            meant = f". Did you mean {near[0]!r}?" if near else f"; it takes {', '.join(known)}."
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")


def is_real(value: Any) -> bool:
    """Say whether a value is a number; a bool isn't meant as one."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_one_of(value: Any, allowed: Collection[str]) -> TypeGuard[str]:
    """Say whether a value is one of several words; an array is none, and raises nothing."""
    return isinstance(value, str) and value in allowed


def check_fraction(name: str, value: Any, fix: str) -> None:
    """Refuse what isn't a number strictly between 0 and 1."""
    if not (is_real(value) and 0.0 < value < 1.0):
        raise InvalidInputError(f"{name} must be in (0, 1)", repr(value), fix)


def check_one_of(name: str, value: Any, allowed: Sequence[str], fix: str) -> None:
    """Refuse what isn't one of a few words."""
    if not is_one_of(value, allowed):
        *most, last = (f'"{word}"' for word in allowed)
        raise InvalidInputError(f"{name} must be {', '.join(most)} or {last}", repr(value), fix)


def whole_number(name: str, value: Any, least: int | None, fix: str) -> int:
    """Return a value as a plain int; refuse what is no integer, or below the least one."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise InvalidInputError(f"{name} must be an integer{bound}", repr(value), fix)
    return int(value)


def raisable_limit(variable: str, default: int, unit: str) -> int:
    """Return a limit, a number of ``unit``, that the user may raise by an environment variable."""
    text = os.environ.get(variable, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInputError(
            f"{variable} must be a number of {unit}", repr(text), "Write it in digits alone."
        )
    return int(text)
