"""The command ``trueup``."""

from __future__ import annotations

import sys

_RUN_OWN_CODE = (["resample"], ["tune"])  # the user's, as it would run without trueup


def main() -> None:
    """Run the command line; without the extra that it needs, say how to install it."""
    try:
        from trueup_cli.app import app
        from trueup_cli.shell.output import show_traceback
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        print("click is not installed. Run: pip install 'trueup[cli]'", file=sys.stderr)
        sys.exit(2)
    sys.excepthook = show_traceback
    if sys.argv[1:2] not in _RUN_OWN_CODE:
        _collect_seldom()
    app(prog_name="trueup")


def _collect_seldom() -> None:
    """Look for garbage among new objects only, and for none at the end of the process.

    MLflow and torch make a million objects that all stay: to go through them again and again, and
    twice at the end, took two seconds of a command. Cycles of new objects are found as before, and
    what the process holds at its end the system takes back.
    """
    import atexit
    import gc

    gc.set_threshold(10_000, 10, 100)
    atexit.register(gc.freeze)
