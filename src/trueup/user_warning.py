"""Warn the user at the line of their own code, however deep inside of trueup the reason lies."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from trueup.errors import TrueupWarning
from trueup.redact import without_credentials

_hosts = {"trueup", "sklearn"}
"""Trueup, and packages that call it on the user's behalf."""


def pass_over(*packages: str) -> None:
    """Add packages that a plugin is a guest of: warnings point past their frames too."""
    _hosts.update(packages)


def warn_user(message: str) -> None:
    """Issue a ``TrueupWarning`` at the first frame outside of trueup and of what it is a guest of.

    Where there is no such frame, as in a thread of MLflow, it is the outermost one.
    """
    frame = sys._getframe()
    while frame.f_back is not None and _is_host(frame):
        frame = frame.f_back
    warnings.warn_explicit(
        without_credentials(message),
        TrueupWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_host(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in _hosts or package.startswith("trueup_")
