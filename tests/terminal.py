"""A terminal of 24 lines by 100 columns for the standard error of a program."""

from __future__ import annotations

import os
import subprocess

import pytest


def on_terminal(command):
    """Return what the terminal shows, the program's output and its exit code."""
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 100))
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    seen = b""
    try:
        while part := os.read(reader, 4096):
            seen += part
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(reader)
    output, _ = run.communicate(timeout=60)
    return seen.decode(), output, run.returncode
