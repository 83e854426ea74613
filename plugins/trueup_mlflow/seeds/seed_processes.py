"""The processes of seeds, which end with the one that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

_GRACE = 10.0  # seconds that an interrupted process has to clean up
_POLL = 0.05


class SeedProcesses:
    """Runs commands, from several threads, and stops all of them at once.

    Each command is the leader of a session of its own, so that what it starts can be stopped with
    it; a Ctrl-C in the terminal reaches it through :meth:`stop` alone.
    """

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop` was called; no command starts any more."""
        return self._stopped

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str | None
    ) -> bool:
        """Run a command to its end, in a folder or in this one, and return whether it succeeded."""
        with self._lock:
            if self._stopped:
                return False
            process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
            self._running.add(process)
        success = process.wait() == 0
        with self._lock:
            self._running.discard(process)
        return success

    def stop(self) -> None:
        """Interrupt what runs, as Ctrl-C does, and kill what has not ended ten seconds later."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        deadline = time.monotonic() + _GRACE
        try:
            for process in running:
                _signal_group(process, signal.SIGINT)
            while any(map(_is_alive, running)) and time.monotonic() < deadline:
                time.sleep(_POLL)
        finally:  # after a second Ctrl-C as well
            for process in running:
                _signal_group(process, signal.SIGKILL)


@contextlib.contextmanager
def ends_cleanly_when_terminated() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process through its ``finally`` clauses meanwhile.

    Signals are left alone outside of the main thread, and where somebody handles or ignores them.
    """
    ours = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ours:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True
