"""A terminal of 24 lines by 100 columns for the standard error of a program."""

from __future__ import annotations

import os
import subprocess

import pytest


def on_terminal(command, until=None):
    """Return what the terminal shows, the program's output and its exit code.

    Where asked, the program gets a line of input once a text is shown.
    """
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 100))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": writer}
    run = subprocess.Popen(command, **pipes, text=True)
    os.close(writer)
    seen = b""
    try:
        while part := os.read(reader, 4096):
            seen += part
            if until is not None and until.encode() in seen:
                until = None
                run.stdin.write("\n")
                run.stdin.flush()
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(reader)
    output, _ = run.communicate(timeout=300)
    return seen.decode(), output, run.returncode
