from __future__ import annotations

import shutil
from uuid import uuid4

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from tests import unsynced  # noqa: F401


@pytest.fixture(autouse=True)
def quiet_optuna():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """A database with Optuna's tables, which take three times as long to make as to copy."""
    path = tmp_path_factory.mktemp("optuna") / "study.db"
    RDBStorage(f"sqlite:///{path}").engine.dispose()
    return path


@pytest.fixture(
    params=["memory", "journal", "sqlite", pytest.param("postgresql", marks=pytest.mark.services)]
)
def storage(request, tmp_path):
    kind = request.param
    if kind == "memory":
        yield InMemoryStorage()
    elif kind == "journal":
        yield JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    else:
        if kind == "postgresql":
            url = request.getfixturevalue("postgresql_url")
        else:
            copied = shutil.copy(request.getfixturevalue("empty_database"), tmp_path)
            url = f"sqlite:///{copied}"
        database = RDBStorage(url)
        yield database
        database.engine.dispose()


@pytest.fixture
def study_name(request):
    return f"{request.node.name}-{uuid4().hex[:8]}"  # a database may outlive a test run
