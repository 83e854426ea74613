"""How trueup tells of a failure of its own without failing the user's run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trueup.errors import TrueupWarning
from trueup.redact import without_credentials
from trueup.user_warning import pass_over, warn_user

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
