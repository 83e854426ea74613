"""How trueup tells of a failure of its own without failing the user's run."""

from __future__ import annotations

import sys
import warnings

from trueup.errors import TrueupWarning


def warn(message: str) -> None:
    """Warn with the line of the user's code, the first one outside of trueup.

    The user's call goes on even where filters make warnings errors.
    """
    try:
        warnings.warn(message, TrueupWarning, stacklevel=_caller_level())
    except TrueupWarning:
        return


def describe(failure: BaseException) -> str:
    """Return a failure in one line, with its type where that is not one of trueup's."""
    text = " ".join(str(failure).split())
    kind = type(failure)
    return text if kind.__module__.startswith("trueup.") else f"{kind.__name__}: {text}"


def _caller_level() -> int:
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("trueup", "trueup_mlflow")
