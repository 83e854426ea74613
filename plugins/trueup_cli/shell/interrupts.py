"""SIGTERM as Ctrl-C: what is in flight is marked, what was made stays, and the program ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return what a shell reports of a program that the signal ended; SIGINT where none is said."""
    return 128 + int(stop.args[0] if stop.args else signal.SIGINT)


@contextmanager
def interruptible(*, once: bool = False) -> Iterator[None]:
    """Raise ``KeyboardInterrupt(signal number)`` on SIGTERM.

    With ``once`` also take over SIGINT, and ignore both after the first of them, so that cleaning
    up isn't interrupted: for a process that another one kills when it doesn't end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    taken = [signal.SIGTERM]
    if once and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        taken.append(signal.SIGINT)
    owner = os.getpid()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a fork by the training, which dies as it would without trueup
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        for other in taken if once else ():
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    before = [signal.signal(number, interrupt) for number in taken]
    try:
        yield
    finally:
        for number, handler in zip(taken, before, strict=True):
            signal.signal(number, handler)
