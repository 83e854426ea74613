"""Ctrl-C and SIGTERM at safe points: heard while a training runs, held back around it.

A trial is claimed, marked, finished and queued again in several steps, and a signal that raises
between two of them leaves a trial that nobody owns, or a storage that has skipped an operation. So
a signal waits until the steps are done. Only the main thread hears signals, and only those that a
Python function handles are held back: SIGINT, and SIGTERM where the program has taken it over.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE = 10.0
"""Seconds after which a second signal isn't held back: what held back the first one may hang."""

_Handler = Callable[[int, FrameType | None], object]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Gate(threading.local):
    """Whether signals come through; other threads than the main one find it open for ever."""

    def __init__(self) -> None:
        self.installed = False
        self.shut = False
        self.waiting: int | None = None
        self.since = 0.0
        self.before: dict[int, _Handler] = {}


_GATE = _Gate()


def _hear(number: int, frame: FrameType | None) -> None:
    was_shut, now = _GATE.shut, time.monotonic()
    if was_shut and (_GATE.waiting is None or now - _GATE.since < PATIENCE):
        if _GATE.waiting is None:
            _GATE.waiting, _GATE.since = number, now
        return
    _GATE.shut = _GATE.installed  # what the handler raises is cleaned up after undisturbed
    _GATE.before[number](number, frame)
    _GATE.shut = was_shut


@contextmanager
def hold_signals() -> Iterator[None]:
    """Hold signals back until the block ends, but for blocks of ``hear_signals`` inside."""
    if threading.current_thread() is not threading.main_thread() or _GATE.shut:
        yield
        return
    outermost = not _GATE.installed
    try:
        _GATE.shut = True
        if outermost:
            _install()
        yield
    finally:
        try:
            if outermost:
                _uninstall()
        finally:
            _GATE.shut = False
            _deliver()


@contextmanager
def hear_signals() -> Iterator[None]:
    """Let signals through, the one that was held back first; after it raised, none."""
    if not _GATE.shut:
        yield
        return
    try:
        _GATE.shut = False
        _deliver()
        yield
    finally:
        _GATE.shut = True


def _install() -> None:
    _GATE.installed = True
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            _GATE.before[number] = handler
            signal.signal(number, _hear)


def _uninstall() -> None:
    _GATE.installed = False  # `before` stays: a handler left by a training may still call `_hear`
    for number, handler in _GATE.before.items():
        if signal.getsignal(number) is _hear:  # a handler may have replaced itself
            signal.signal(number, handler)


def _deliver() -> None:
    number, _GATE.waiting = _GATE.waiting, None
    if number is not None:
        signal.raise_signal(number)
