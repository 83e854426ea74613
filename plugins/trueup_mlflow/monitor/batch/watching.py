"""A watched folder: each complete file is estimated and moved, whatever is wrong with it."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from numpy.typing import NDArray

from trueup.errors import InvalidInputError, TrueupError
from trueup.monitoring import MSEEstimate
from trueup.read.times import read_times
from trueup.user_warning import warn_user
from trueup_mlflow.monitor.batch.tables import read_table, require_column
from trueup_mlflow.monitor.check.check_registry import check_uri
from trueup_mlflow.monitor.check.registered_model import resolve
from trueup_mlflow.monitor.session import Session
from trueup_mlflow.write.failures import reason_of

SUFFIXES = (".parquet", ".csv", ".csv.gz")
SETTLED_SECONDS = 1.0
"""A file that changed less than this ago may still be written."""

_UNFINISHED = (".tmp", ".part", ".partial", "~")
"""Names under which a file is written that gets its own one when it is complete."""

_LONGEST_NAME = 255  # bytes, on the file systems in use
_LONGEST_PAUSE = 86_400.0
_REASON = ".reason.txt"


@dataclass(frozen=True)
class BatchTimes:
    """Where the time of a file's batch comes from.

    Attributes
    ----------
    column : str or None
        Column of the rows; the latest time of it is the batch's.
    pattern : str or None
        Regular expression with one group around the time in the file's name.
    time_format : str or None
        Format of either, as of ``strptime``; ISO 8601 by default.
    modified : bool
        Whether the time at which the file was last modified stands in.
    """

    column: str | None = None
    pattern: str | None = None
    time_format: str | None = None
    modified: bool = False

    def __post_init__(self) -> None:
        given = sum((self.column is not None, self.pattern is not None, self.modified))
        if given > 1:
            raise InvalidInputError(
                "time_column, name_pattern and modified_time must exclude each other",
                f"{given} of them",
                "Give one.",
            )
        if self.time_format is not None and self.column is None and self.pattern is None:
            raise InvalidInputError(
                "time_format must come with time_column or name_pattern", "neither", "Give one."
            )
        if self.pattern is not None and not _has_group(self.pattern):
            raise InvalidInputError(
                "name_pattern must be a regular expression with a group around the time",
                repr(self.pattern),
                r"Write it as rows_(.*)\.csv.",
            )

    def of(self, path: Path, rows: pd.DataFrame) -> datetime | None:
        """Return the time of a file's batch, None for now; refuse what holds none if asked."""
        if self.pattern is not None:
            return self._of_name(path.name)
        if self.column is not None:
            return self._of_rows(rows)
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if self.modified else None

    def _of_name(self, name: str) -> datetime:
        found = re.search(self.pattern or "", name)
        if found is None or not found[1]:
            raise InvalidInputError(
                "name_pattern must match the file's name with a group around the time",
                repr(name),
                "Correct the pattern or the name.",
            )
        return _moment(read_times([found[1]], time_format=self.time_format))

    def _of_rows(self, rows: pd.DataFrame) -> datetime:
        require_column(rows, self.column, "time_column")
        return _moment(read_times(rows[self.column], time_format=self.time_format))


def watch(
    model_uri: str,
    folder: str | Path,
    *,
    seconds: float = 10.0,
    once: bool = False,
    times: BatchTimes | None = None,
) -> Iterator[tuple[Path, MSEEstimate | TrueupError]]:
    """Estimate and log files as they come in a folder.

    Parameters
    ----------
    model_uri : str
        As in :func:`trueup_mlflow.monitor.estimate`; an alias is followed anew at each look.
    folder : str or path
        Parquet and CSV files. A file that grows is waited for until it has been left alone; one of
        another ending is skipped with one warning, hidden and temporary ones without.
    seconds : float, default 10
        Pause between two looks, at most a day.
    once : bool, default False
        Stop when the folder holds no more files.
    times : BatchTimes, optional
        Where the times of batches come from; by default the moment at which a file is judged.

    Yields
    ------
    (Path, MSEEstimate or TrueupError)
        Each file in the order of its age, with its estimate or what is wrong with it.

    Raises
    ------
    InvalidInputError
        If the version has no check, there is no such version, or the pause is none; the files stay.

    Notes
    -----
    A file moves to ``done/`` after it was logged, or to ``rejected/`` with the reason beside it in
    ``<name>.reason.txt``; a second one of the same name gets a number. A process that is killed in
    between leaves the file; the next one finds its batch logged, logs nothing twice, and moves it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from trueup_mlflow import monitor
    >>> Path("inbox").mkdir(exist_ok=True)
    >>> list(monitor.watch("models:/demand/1", "inbox", once=True))  # nothing came
    []
    """
    if not 0.0 < seconds <= _LONGEST_PAUSE:
        raise InvalidInputError(
            "seconds must be above 0 and at most a day, 86400", str(seconds), "Give the pause."
        )
    root, session, times = Path(folder), None, times or BatchTimes()
    skipped: set[str] = set()
    while True:
        _say_skipped(root, skipped)
        session = _current(session, model_uri)
        ready, growing = _complete(root)
        stayed = False
        for path in ready:
            session = _current(session, model_uri)  # a file is not to blame if the alias moved
            outcome = _handle(session, path, times)
            stayed = stayed or isinstance(outcome, StoreUnavailableError)
            yield path, outcome
        if once and (stayed or not growing):
            return
        time.sleep(SETTLED_SECONDS / 4.0 if growing else seconds)


class StoreUnavailableError(TrueupError):
    """The store took no batch; the file stays where it is and is tried again."""


def _current(session: Session | None, model_uri: str) -> Session:
    """Return the session of the version that the URI means now; loaded only if it is another."""
    version = resolve(model_uri, MlflowClient())
    check = check_uri(version)
    if session is not None and session.version == version and session.check_uri == check:
        return session
    return Session.open(model_uri)


def _complete(root: Path) -> tuple[list[Path], bool]:
    """Return files that were left alone, the oldest first, and whether others still grow."""
    changed = {
        path: _changed(path)
        for path in root.iterdir()
        if path.name.lower().endswith(SUFFIXES) and not path.name.startswith(".")
    }
    now = time.time()
    ready = [path for path, at in changed.items() if not 0.0 <= now - at < SETTLED_SECONDS]
    return sorted(ready, key=lambda path: (changed[path], path.name)), len(ready) < len(changed)


def _say_skipped(root: Path, said: set[str]) -> None:
    """Name each file once that is none of a batch: it would lie there for ever."""
    for path in sorted(root.iterdir()):
        name = path.name.lower()
        is_passing = name.startswith(".") or name.endswith(_UNFINISHED)
        if path.name in said or is_passing or name.endswith(SUFFIXES) or not path.is_file():
            continue
        said.add(path.name)
        warn_user(
            f"{path.name!r} is skipped: files must end in .parquet, .csv or .csv.gz. Convert it, "
            "or keep it elsewhere."
        )


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # a dangling link, or another watcher was faster
        return 0.0


def _handle(session: Session, path: Path, times: BatchTimes) -> MSEEstimate | TrueupError:
    outcome = _outcome(session, path, times)
    if isinstance(outcome, StoreUnavailableError):
        return outcome
    rejected = isinstance(outcome, TrueupError)
    moved = _move(path, path.parent / ("rejected" if rejected else "done"))
    if rejected and moved is not None:
        with suppress(OSError):  # no room for it; whoever watches is told all the same
            reason = moved.with_name(_cut(moved.name, _REASON))
            reason.write_text(f"{outcome}\n", encoding="utf-8", errors="backslashreplace")
    return outcome


def _outcome(session: Session, path: Path, times: BatchTimes) -> MSEEstimate | TrueupError:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InvalidInputError("file must be a regular file", "another kind", "Remove it.")
        schema = session.check.schema
        rows = read_table(path, row_id=schema.row_id, kind=schema.id_kind)
        at = times.of(path, rows)
    except Exception as failure:  # whatever a reader says of a broken file must not end the watch
        return _as_ours(failure)
    try:
        return session.estimate(rows, at=at)
    except (MlflowException, OSError) as failure:
        return StoreUnavailableError(f"the store failed: {reason_of(failure)}. The file stays.")
    except Exception as failure:  # values that no check foresaw
        return _as_ours(failure)


def _as_ours(failure: Exception) -> TrueupError:
    if isinstance(failure, TrueupError):
        return failure
    kind = type(failure).__name__
    return InvalidInputError(
        "file must be a table", f"{kind}: {reason_of(failure)[:300]}", "Check how it was written."
    )


def _has_group(pattern: str) -> bool:
    try:
        return re.compile(pattern).groups > 0
    except re.error:
        return False


def _cut(name: str, ending: str) -> str:
    """Return a name with an ending, cut so that a file system takes it."""
    room = _LONGEST_NAME - len(os.fsencode(ending))
    return os.fsdecode(os.fsencode(name)[: max(room, 1)]) + ending


def _move(path: Path, folder: Path) -> Path | None:
    """Move a file into a folder, under a number where its name is taken."""
    folder.mkdir(exist_ok=True)
    target, number = folder / path.name, 1
    while os.path.lexists(target):
        number += 1
        stem, dot, suffix = path.name.partition(".")
        target = folder / _cut(stem, f"-{number}{dot}{suffix}")
    try:
        return path.rename(target)
    except FileNotFoundError:  # another watcher was faster
        return None


def _moment(values: NDArray[Any]) -> datetime:
    if values.dtype.kind != "M" or not len(values):
        raise InvalidInputError(
            "times of batches must be dates", str(values.dtype), "Give their format."
        )
    seconds = values.max().astype("datetime64[us]").astype(np.int64) / 1e6
    return datetime.fromtimestamp(float(seconds), UTC)
