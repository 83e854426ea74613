"""The command ``trueup``."""

from __future__ import annotations

import sys


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
    app(prog_name="trueup")
