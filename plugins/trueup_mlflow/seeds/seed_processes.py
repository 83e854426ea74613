"""The processes of seeds, which end with the one that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import IO

GRACE = 10.0  # seconds that an interrupted process has to clean up
_POLL = 0.05
_EXPERIMENT_NAME = "MLFLOW_EXPERIMENT_NAME"  # mlflow run refuses it beside the id


@dataclass(frozen=True)
class SeedCommand:
    """How a seed is started, on whatever machine, in a folder or where we are.

    ``variables`` are what its environment has beside that of the machine.
    """

    seed: int
    words: tuple[str, ...]
    variables: Mapping[str, str]
    folder: str | None

    def environment(self) -> dict[str, str]:
        here = {name: value for name, value in os.environ.items() if name != _EXPERIMENT_NAME}
        return {**here, **self.variables}


class SeedProcesses:
    """Runs commands, from several threads, and stops all of them at once.

    Each command is the leader of a session of its own, so that what it starts can be stopped with
    it; a Ctrl-C in the terminal reaches it through :meth:`stop` alone.
    """

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.stopped = False
        """Whether :meth:`stop` was called; no command starts any more."""

    def run(self, command: SeedCommand, _run_id: str, output: IO[bytes] | None = None) -> bool:
        """Run a command to its end and return whether it succeeded; it prints to our output."""
        with self._lock:
            if self.stopped:
                return False
            process = subprocess.Popen(
                command.words,
                env=command.environment(),
                cwd=command.folder,
                start_new_session=True,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
            )
            self._running.add(process)
        success = process.wait() == 0
        with self._lock:
            self._running.discard(process)
        return success

    def stop(self) -> None:
        """Interrupt what runs, as Ctrl-C does, and kill what has not ended ten seconds later."""
        with self._lock:
            self.stopped = True
            running = list(self._running)
        deadline = time.monotonic() + GRACE
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
