"""Parents of seeds whose backend was killed: they are found by their process and ended."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlflow.entities import RunStatus

from trueup_mlflow.write.items import PROCESS_TAG, ROLE_TAG, SEED_PARENT_ROLE
from trueup_mlflow.write.runs import all_pages, children_of

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
