"""One stage of ``trueup tune`` in several processes, which end with the one that began them.

The standard input of a worker is a pipe on which its parent writes one line, the work, and which it
holds open: the address of a database may hold a password, and arguments show in the process table.
The pipe closes when the parent ends, however that happens, so a worker whose parent was killed
finishes the seed in flight and ends too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from trueup.errors import InvalidInputError
from trueup_cli.shell.failures import BadInput, one_line_failures
from trueup_cli.shell.interrupts import exit_code, interruptible
from trueup_cli.shell.output import show_traceback
from trueup_optuna.runtime.signals import hold_signals

if TYPE_CHECKING:
    from trueup_cli.tune.plan import Stage, TunePlan

PATIENCE = 10.0
"""Seconds that interrupted workers have to mark their trials before they are killed."""


def run_workers(plan: TunePlan, stage: Stage, workers: int) -> None:
    """Run one stage in several processes; an interrupt of this one ends them all.

    Raises InvalidInputError if all workers failed; each has printed its error. What a single one
    leaves behind is taken over by the others.
    """
    command = [sys.executable, "-m", "trueup_cli.tune.workers"]
    work = {"plan": asdict(plan), "stage": stage}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(workers):
            given = json.dumps({**work, "worker": number}) + "\n"
            with hold_signals():  # no worker begins without being known here
                running.append(subprocess.Popen(command, stdin=subprocess.PIPE))
                _tell(running[-1], given.encode())
        codes = [worker.wait() for worker in running]
    except KeyboardInterrupt:
        with hold_signals():  # who presses twice still waits for the marks
            _interrupt(running)
        raise
    finally:
        for worker in running:
            worker.kill()
            worker.communicate()
    if all(codes):
        raise InvalidInputError(
            f"a worker must finish the {stage}", f"exit codes {codes}", "Mend the error above."
        )


def _tell(worker: subprocess.Popen[bytes], work: bytes) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):  # it ended at once, and its exit code says so
        worker.stdin.write(work)
        worker.stdin.flush()


def _interrupt(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let the workers mark their trials for whoever resumes."""
    for worker in running:
        worker.terminate()
    end = time.monotonic() + PATIENCE
    for worker in running:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, end - time.monotonic()))


def main() -> int:
    """Work on a stage as a process of its own; return the exit code."""
    sys.excepthook = show_traceback
    try:
        with interruptible(once=True), one_line_failures():
            _work(json.loads(_first_line()))
    except KeyboardInterrupt as stop:
        return exit_code(stop)
    except BadInput as failure:
        failure.show()
        return failure.exit_code
    return 0


def _work(work: dict[str, Any]) -> None:
    import optuna  # here, where an interrupt is heard: it takes seconds

    from trueup_cli.tune.plan import TunePlan
    from trueup_cli.tune.run import run_stage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    run_stage(TunePlan(**work["plan"]), work["stage"], work["worker"], _parent_gone())


def _first_line() -> bytes:
    """Read the work byte by byte, so that nothing of what the pipe says later is lost."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise KeyboardInterrupt  # the parent ended before it said what to do
        line += byte
    return bytes(line)


def _parent_gone() -> Event:
    """Return an event that is set when the standard input closes."""
    gone = Event()

    def watch() -> None:
        while os.read(0, 1):
            pass
        gone.set()

    Thread(target=watch, daemon=True).start()
    return gone


if __name__ == "__main__":
    sys.exit(main())
