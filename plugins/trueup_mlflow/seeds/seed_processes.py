"""The processes of seeds, which end with the one that started them; parents that it left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from mlflow.entities import RunStatus

from trueup_mlflow.write.items import PROCESS_TAG, ROLE_TAG, SEED_PARENT_ROLE
from trueup_mlflow.write.runs import all_pages, children_of

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


_KILLED = str(RunStatus.to_string(RunStatus.KILLED))


def this_process() -> str:
    """Return what tells this process from all others: host, number and start."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_of(os.getpid())}"


def end_abandoned(client: Any, experiment_ids: Sequence[str]) -> list[str]:
    """End the parents of seeds, and their seeds, whose backend has died on this machine.

    Returned are the ids of these parents. Those of other machines are left alone.
    """
    running = f"attributes.status = 'RUNNING' and tags.`{ROLE_TAG}` = '{SEED_PARENT_ROLE}'"
    ended = []
    for parent in list(all_pages(client.search_runs, list(experiment_ids), running)):
        if _has_died(parent.data.tags.get(PROCESS_TAG, "")):
            run_id, alive = parent.info.run_id, "attributes.status = 'RUNNING'"
            for run in [*children_of(client, experiment_ids, run_id, alive), parent]:
                client.set_terminated(run.info.run_id, _KILLED)
            ended.append(str(run_id))
    return ended


def _has_died(process: str) -> bool:
    """Return whether a process of this machine has ended; False where it is not of this machine."""
    host, _, rest = process.partition(":")
    number, _, start = rest.partition(":")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and belongs to somebody else
        return False
    return start != _start_of(int(number))


def _start_of(number: int) -> str:
    """Return when a process started, in ticks; empty where the system has no /proc."""
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
