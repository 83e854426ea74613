"""Seeds on the workers of a cluster: each is one function, which runs the entry point there.

A worker hears of an end through the store, which every cluster reaches: it looks at the parent run
and stops its seed once that has ended.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from mlflow.entities import RunStatus
from mlflow.exceptions import ExecutionException
from mlflow.tracking import MlflowClient

from trueup.executor import Executor
from trueup_mlflow.seeds.seed_processes import GRACE, SeedCommand, SeedProcesses, this_process
from trueup_mlflow.write.items import PROCESS_TAG

_WATCH = 2.0  # seconds between two looks at the parent
_TAIL = 2000  # characters of what a failed seed has printed
_KILLED = str(RunStatus.to_string(RunStatus.KILLED))


@dataclass(frozen=True)
class SeedJob:
    """What travels to a worker: a command, and the runs that it belongs to."""

    command: SeedCommand
    run_id: str
    parent_run_id: str
    tracking_uri: str


class SeedsElsewhere:
    """Runs commands on the workers of a cluster, from several threads, and stops all of them.

    The workers write to the store ``tracking_uri``, and end with the parent of the seeds.
    """

    def __init__(self, executor: Executor, parent_run_id: str, tracking_uri: str) -> None:
        self._executor, self._parent, self._uri = executor, parent_run_id, tracking_uri
        self._waiting: dict[str, Any] = {}
        self.stopped = False
        """Whether :meth:`stop` was called; no command starts any more."""

    def run(self, command: SeedCommand, run_id: str) -> bool:
        """Run a command to its end on some worker, and return whether it succeeded.

        Raises ExecutionException if no worker could run it: the project, the store or trueup is
        missing there.
        """
        if self.stopped:
            return False
        job = SeedJob(command, run_id, self._parent, self._uri)
        future = self._executor.submit(run_on_worker, job)
        self._waiting[run_id] = future
        try:
            problem = future.result()
        except ExecutionException:
            raise
        except ImportError as error:
            raise ExecutionException(
                f"a worker of executor must be able to import what starts a seed; got {error}. "
                "Install trueup[mlflow] and what the project needs in the environment of the "
                "workers."
            ) from error
        except Exception as error:  # the worker died, or the cluster is gone: so is this seed
            problem = f"{type(error).__name__}: {error}"
        finally:
            del self._waiting[run_id]
        if problem is not None and not self.stopped:
            print(f"seed {command.seed} failed, {problem}", file=sys.stderr, flush=True)
        return problem is None

    def stop(self) -> None:
        """End the parent, which lets workers stop their seeds, and wait for them for a while."""
        self.stopped = True
        with suppress(Exception):  # where the store is the fault, only the cluster can be told
            MlflowClient(self._uri).set_terminated(self._parent, _KILLED)
        deadline = time.monotonic() + GRACE + 2 * _WATCH
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.1)
        for future in list(self._waiting.values()):
            with suppress(AttributeError):  # of Spark, whose jobs end with the session
                future.cancel()


def run_on_worker(job: SeedJob) -> str | None:
    """Run a seed on this machine; return None, or what went wrong.

    A project or store that isn't there is an ExecutionException.
    """
    where = f"on worker {socket.gethostname()}"
    _check_folder(job, where)
    _begin(job, where)
    with tempfile.TemporaryFile() as output, _stopping_with_parent(job) as processes:
        if processes.run(_on_this_machine(job.command), job.run_id, output):
            return None
        return f"{where}:\n{_end_of(output)}"


def _check_folder(job: SeedJob, where: str) -> None:
    folder = job.command.folder
    if folder is None or not Path(folder, "MLproject").is_file():
        raise ExecutionException(
            f"the project's folder must be there {where}; got no MLproject in {folder}. Run it "
            "from a file system that all workers share, or leave executor out."
        )


def _begin(job: SeedJob, where: str) -> None:
    """Take the run of the seed, unless another worker has died over it: it may still write."""
    client = MlflowClient(job.tracking_uri)
    try:
        tags = client.get_run(job.run_id).data.tags
    except Exception as error:
        raise ExecutionException(
            f"the tracking store must be within reach {where}; got {error}. "
            "Start `mlflow server`, set MLFLOW_TRACKING_URI to its address here, and credentials "
            "such as MLFLOW_TRACKING_TOKEN in the environment of the workers."
        ) from error
    if PROCESS_TAG in tags:
        raise ChildProcessError(f"its worker ({tags[PROCESS_TAG]}) has died. Run this seed again.")
    client.set_tag(job.run_id, PROCESS_TAG, this_process())


def _on_this_machine(command: SeedCommand) -> SeedCommand:
    """Let ``python`` mean that of the worker, whose PATH was often never set for a person."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return replace(command, variables={**command.variables, "PATH": path})


@contextmanager
def _stopping_with_parent(job: SeedJob) -> Iterator[SeedProcesses]:
    processes, over = SeedProcesses(), threading.Event()

    def watch() -> None:
        client = MlflowClient(job.tracking_uri)
        while not over.wait(_WATCH):
            with suppress(Exception):  # a store that doesn't answer now may do so next time
                status = client.get_run(job.parent_run_id).info.status
                if RunStatus.is_terminated(RunStatus.from_string(status)):
                    processes.stop()
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield processes
    finally:
        over.set()
        watcher.join()


def _end_of(output: IO[bytes]) -> str:
    length = output.seek(0, os.SEEK_END)
    output.seek(max(0, length - _TAIL))
    return output.read().decode(errors="replace").strip()
