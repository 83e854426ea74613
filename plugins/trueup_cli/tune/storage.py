"""Where ``trueup tune`` keeps its studies: a journal file or a database."""

from __future__ import annotations

import re
from pathlib import Path

import optuna
from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from trueup.errors import InvalidInputError
from trueup_optuna.runtime.journal import open_journal

_LONGEST_REASON = 300
_JOURNAL_STARTS = re.compile(rb'\s*\{\s*"op_code"')


def open_storage(where: str) -> BaseStorage:
    """Return the storage behind a database URL, or behind the path of a journal file.

    Raises InvalidInputError if no driver knows the URL, the database can't be reached or doesn't
    hold what this version of Optuna reads, or the file is no journal.
    """
    return _open_database(where) if "://" in where else _open_file(where)


def _open_database(url: str) -> BaseStorage:
    try:
        return RDBStorage(url)
    except (NoSuchModuleError, ImportError, ValueError) as error:
        rule, fix = "a database URL whose driver is installed", "Correct the URL"
        reason: object = error
    except (SQLAlchemyError, RuntimeError) as error:
        rule, fix = "a database that can be opened", "Start its server or correct the URL"
        reason = getattr(error, "orig", error)
    raise InvalidInputError(
        f"--storage must be {rule}",
        repr(url),
        f"{fix}, which looks like postgresql+psycopg://user@host/name, or give the path of a "
        f"journal file: {reason}",
    ) from None


def _open_file(path: str) -> BaseStorage:
    if not _may_be_journal(Path(path)):
        raise _no_journal(path, "its first line is no operation of a study")
    try:
        return open_journal(path)
    except OSError:
        raise
    except Exception as error:  # Optuna replays each line, and fails on a bad one in many ways
        reason = f"a line of it can't be replayed ({type(error).__name__}: {error})"
        raise _no_journal(path, " ".join(reason.split())[:_LONGEST_REASON]) from None


def _may_be_journal(path: Path) -> bool:
    """Say whether a file is new, empty or begins like a journal, before anything is written."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        start = file.read(64)
    return not start or _JOURNAL_STARTS.match(start) is not None


def _no_journal(path: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        "--storage must be a database URL or the path of a journal file",
        f"{path!r}, and {reason}",
        "Give the path of a new file or of the journal that the study was begun in.",
    )


def load_study(storage: str, name: str) -> optuna.Study:
    """Return a study that exists."""
    missing = "://" not in storage and not Path(storage).exists()
    try:
        if not missing:
            return optuna.load_study(study_name=name, storage=open_storage(storage))
    except KeyError:
        pass
    raise InvalidInputError(
        f"study must exist in {storage}", repr(name), "Check --storage and --study-name."
    )
