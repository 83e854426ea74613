"""How trueup tells of a failure of its own, without failing the user's run, and when it stops."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from trueup.errors import InvalidInputError, TrueupWarning
from trueup.redact import without_credentials
from trueup.user_warning import pass_over, warn_user

P = ParamSpec("P")
R = TypeVar("R")

pass_over("mlflow", "optuna", "lightning", "torch", "xgboost", "lightgbm")


def warn(message: str) -> None:
    """Warn with the line of the user's code, the first one outside of trueup.

    The user's call goes on even where filters make warnings errors.
    """
    try:
        warn_user(message)
    except TrueupWarning:
        return


def describe(failure: BaseException) -> str:
    """Return a failure in one line, with its type where that is not one of trueup's, clean."""
    text = without_credentials(" ".join(str(failure).split()))
    kind = type(failure)
    return text if kind.__module__.startswith("trueup.") else f"{kind.__name__}: {text}"


def reason_of(failure: Exception) -> str:
    """Return what another package's failure said, as a part of a sentence of ours."""
    return without_credentials(" ".join(str(failure).split())).rstrip(" .")


def refusing_only(function: Callable[P, R]) -> Callable[P, R | None]:
    """Let a function raise for arguments only; any other failure is a warning, and returns None."""
    parameters, name = signature(function), function.__name__

    @wraps(function)
    def guest(*args: P.args, **kwargs: P.kwargs) -> R | None:
        parameters.bind(*args, **kwargs)  # a call that no function could take
        try:
            return function(*args, **kwargs)
        except InvalidInputError:
            raise
        except Exception as failure:
            with suppress(Exception):
                warn(f"{name} did not do all of its work: {describe(failure)}")
            return None

    return guest


@contextmanager
def told(what: str) -> Iterator[None]:
    """Warn of a failure in place of raising it.

    Under ``with suppress(Exception), told(...)`` nothing gets through to the user, not even a
    failure in telling.
    """
    try:
        yield
    except Exception as failure:
        warn(f"{what}: {describe(failure)}")


def is_unanswered(failure: BaseException) -> bool:
    """Return whether a request failed because the store did not answer in time."""
    cause: BaseException | None = failure
    while cause is not None:
        if "Timeout" in type(cause).__name__ or "timed out" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


OWN_WRITING: ContextVar[bool] = ContextVar("OWN_WRITING", default=False)
"""Whether a request is one that trueup makes for a result of its own."""


@contextmanager
def own_writing() -> Iterator[None]:
    """Let the requests of the block be known as trueup's own."""
    token = OWN_WRITING.set(True)
    try:
        yield
    finally:
        OWN_WRITING.reset(token)


COOLDOWN = 60.0
"""Seconds for which nothing is written after a failure."""
_MAX_PLACES = 1024


class Breaker:
    """Says where a write has failed in the last minute, so that a hung server costs one timeout."""

    def __init__(self, cooldown: float = COOLDOWN) -> None:
        self._cooldown = cooldown
        self._failed: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def trip(self, place: str) -> bool:
        """Note a failure; return whether it is the first one of that place."""
        with self._lock:
            is_first = place not in self._failed
            self._failed[place] = time.monotonic()
            self._failed.move_to_end(place)
            while len(self._failed) > _MAX_PLACES:
                self._failed.popitem(last=False)
            return is_first

    def is_open(self, place: str) -> bool:
        """Return whether a place is to be left alone now."""
        with self._lock:
            failed = self._failed.get(place)
        return failed is not None and time.monotonic() - failed < self._cooldown


SILENT = Breaker()
"""The stores that did not answer lately, by their URI."""
