"""One stage of ``trueup tune`` in several processes, which end with the one that began them.

The standard input of a worker is a pipe that its parent holds open and never writes to. It closes
when the parent ends, however that happens, so a worker whose parent was killed finishes the seed in
flight and ends too.
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
from trueup_cli.failures import BadInput, one_line_failures
from trueup_cli.interrupts import exit_code, interruptible
from trueup_optuna.signals import hold_signals

if TYPE_CHECKING:
    from trueup_cli.tune_plan import TunePlan
    from trueup_cli.tune_run import Stage

PATIENCE = 10.0
"""Seconds that interrupted workers have to mark their trials before they are killed."""


def run_workers(plan: TunePlan, stage: Stage, workers: int) -> None:
    """Run one stage in several processes; an interrupt of this one ends them all.

    Raises
    ------
    InvalidInputError
        If all workers failed; each has printed its error. What a single one leaves behind is taken
        over by the others.
    """
    command = [sys.executable, "-m", "trueup_cli.tune_workers"]
    work = {"plan": asdict(plan), "stage": stage}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(workers):
            given = json.dumps({**work, "worker": number})
            with hold_signals():  # no worker begins without being known here
                running.append(subprocess.Popen([*command, given], stdin=subprocess.PIPE))
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
            f"a worker must finish the {stage}; got exit codes {codes}. Mend the error above."
        )


def _interrupt(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let the workers mark their trials for whoever resumes."""
    for worker in running:
        worker.terminate()
    end = time.monotonic() + PATIENCE
    for worker in running:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, end - time.monotonic()))


def main(content: str) -> int:
    """Work on a stage as a process of its own; return the exit code."""
    try:
        with interruptible(once=True), one_line_failures():
            _work(json.loads(content))
    except KeyboardInterrupt as stop:
        return exit_code(stop)
    except BadInput as failure:
        failure.show()
        return failure.exit_code
    return 0


def _work(work: dict[str, Any]) -> None:
    import optuna  # here, where an interrupt is heard: it takes seconds

    from trueup_cli.tune_plan import TunePlan
    from trueup_cli.tune_run import run_stage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    run_stage(TunePlan(**work["plan"]), work["stage"], work["worker"], _parent_gone())


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
    sys.exit(main(sys.argv[1]))
