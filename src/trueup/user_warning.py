"""Warn the user at the line of their own code, however deep inside of trueup the reason lies."""

from __future__ import annotations

import sys
import warnings

from trueup.errors import TrueupWarning


def warn_user(message: str) -> None:
    """Issue a ``TrueupWarning`` at the first frame outside of trueup and its plugins."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, TrueupWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.startswith(("trueup.", "trueup_"))
