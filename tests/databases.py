"""MLflow databases for the tests: one is migrated, the others are copies of it.

The migrations of an empty database take two seconds of a processor, and a command that finds them
done starts so much faster too.
"""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from mlflow import MlflowClient
from tests import unsynced  # noqa: F401

DEFAULT_EXPERIMENT = "0"


@cache
def _migrated() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trueup-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    MlflowClient(f"sqlite:///{folder / 'mlflow.db'}").search_experiments()
    return folder / "mlflow.db"


def new_database(folder: Path, name: str = "mlflow.db") -> str:
    """Return the URI of an empty database in the folder, as MLflow would have made it there."""
    path = folder / name
    shutil.copy(_migrated(), path)
    place = folder / "mlruns" / DEFAULT_EXPERIMENT
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?",
            (str(place), DEFAULT_EXPERIMENT),
        )
    return f"sqlite:///{path}"
