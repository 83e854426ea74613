"""A real ``mlflow server`` in a process of its own, at a port that the system gives it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.warm import PYTHON

# Five more processes of MLflow's, which would wait for jobs that no test gives them.
_WITHOUT_JOBS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
_PATIENCE = 300.0  # seconds; a start takes 5 to 20 on a busy machine
_SAID = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


@contextlib.contextmanager
def mlflow_server(
    folder: Path, store: str, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve a store, and yield the address; the log lies in the folder."""
    command = [
        *(PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "0"),
        *("--backend-store-uri", store, "--workers", "1", *options),
    ]
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=file,
            stderr=file,
            env={**os.environ, **_WITHOUT_JOBS, **(environment or {})},
        )
        try:
            yield _address(log, process)
        finally:
            process.terminate()
            process.wait(300)


def _address(log: Path, process: subprocess.Popen) -> str:
    """Wait until the server has said where it listens, and answers there."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        said = _SAID.search(log.read_text())
        if said:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{said[1]}/health", timeout=60),
            ):
                return said[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise TimeoutError(f"no answer in {_PATIENCE} s: {log.read_text()}")
