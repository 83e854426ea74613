"""Putting functions in the place of others, and taking them away again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

Place = tuple[Any, str, Callable[..., Any]]
"""A module or class, the name of an attribute, and what is to take its place."""


def replaced(places: list[Place]) -> Callable[[], None]:
    """Replace attributes and return what puts the originals back.

    An attribute that somebody else has replaced in the meantime is left to them.
    """
    originals = [getattr(owner, name) for owner, name, _ in places]
    for owner, name, hooked in places:
        setattr(owner, name, hooked)

    def unhook() -> None:
        for (owner, name, hooked), original in zip(places, originals, strict=True):
            if getattr(owner, name) is hooked:
                setattr(owner, name, original)

    return unhook


def watched(
    function: Callable[..., Any],
    *,
    before: Callable[..., object] | None = None,
    after: Callable[..., object] | None = None,
) -> Callable[..., Any]:
    """Return a function that tells of its calls; ``after`` is given the value before the arguments.

    What fails in telling does not reach the caller.
    """

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            with suppress(Exception):
                before(*args, **kwargs)
        value = function(*args, **kwargs)
        if after is not None:
            with suppress(Exception):
                after(value, *args, **kwargs)
        return value

    return told


def modules_with(name: str, function: Any, home: str) -> list[ModuleType]:
    """Return the modules outside of ``home`` in which a name is bound to a function."""
    return [
        module
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType)
        and vars(module).get(name) is function  # of thousands, few go on to the next question
        and not module.__name__.startswith(home)
    ]
