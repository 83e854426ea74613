"""A journal file for many workers on one machine.

Optuna's own backend flushes the disk after every operation, of which a trial has about ten, and
waits for its lock by sleeping. This one writes the same file, faster, and outlives its writers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any
from weakref import WeakSet

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

SYNC_SECONDS = 0.1
"""An operation is flushed to the disk when the last flush of its process is older than this."""


def open_journal(path: str | os.PathLike[str]) -> JournalStorage:
    """Return a storage in a journal file on a local disk, for any number of processes.

    Parameters
    ----------
    path : str or path
        Of the journal; it is made where there is none.

    Returns
    -------
    optuna.storages.JournalStorage
        Reads and writes Optuna's format, so that other tools can read the study while it runs. All
        that *write* at the same time must open it with this function, because Optuna's own backend
        takes another lock.

    Notes
    -----
    Killed processes lose nothing that was written, because the operating system keeps it. A power
    failure can take operations that came within 0.1 seconds of an earlier flush by their process
    and that the operating system hadn't written back yet (Linux does within about 30 seconds). On
    Windows, which lacks this kind of lock, the storage is Optuna's own.

    Examples
    --------
    >>> import optuna
    >>> from trueup_optuna import open_journal
    >>> study = optuna.create_study(storage=open_journal("study.journal"), study_name="clicks")
    >>> optuna.load_study(storage=open_journal("study.journal"), study_name="clicks").study_name
    'clicks'
    """
    name = os.fspath(path)
    if sys.platform == "win32":
        return JournalStorage(JournalFileBackend(name, JournalFileOpenLock(name)))
    storage = JournalStorage(_LocalJournal(name))
    _OPEN.add(storage)
    return storage


_OPEN: WeakSet[JournalStorage] = WeakSet()


def _rename_after_fork() -> None:
    """Name the worker of each open journal anew: parent and child would share their trials."""
    for storage in list(_OPEN):
        storage.__setstate__(storage.__getstate__())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename_after_fork)


class _LocalJournal(JournalFileBackend):
    """Append under a lock that the kernel releases when its holder dies, and flush now and then."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path
        self._synced_at = 0.0

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        file = os.open(self._path, os.O_RDWR | os.O_APPEND)
        try:
            _append_locked(file, lines.encode())
            if time.monotonic() - self._synced_at >= SYNC_SECONDS:
                os.fsync(file)
                self._synced_at = time.monotonic()
        finally:
            os.close(file)


def _append_locked(file: int, content: bytes) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        _drop_torn_line(file)
        while content:
            content = content[os.write(file, content) :]
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _drop_torn_line(file: int) -> None:
    """Cut off a last line that a dying writer left without its end; readers have skipped it."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return
    with open(os.dup(file), "rb") as whole:
        whole.seek(0)
        os.ftruncate(file, whole.read().rfind(b"\n") + 1)
