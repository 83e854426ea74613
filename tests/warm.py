"""Programs in forks of a process that has imported the libraries, which takes seconds each time.

For tests of what a program does, not of what its start costs. Neither MLflow nor trueup is imported
beforehand: plugins, hooks and switches are found as they are in a process of their own.
"""

from __future__ import annotations

import atexit
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        *("alembic.command", "click", "fastapi", "importlib_metadata", "jinja2"),
        *("matplotlib.pyplot", "opentelemetry.sdk.trace", "optuna", "pandas", "pyarrow.parquet"),
        *("pyspark.sql", "requests", "scipy.optimize", "scipy.stats", "sklearn.ensemble"),
        *("sklearn.linear_model", "sklearn.metrics", "sklearn.pipeline", "sqlalchemy.orm"),
        *("sqlparse", "torch", "tqdm", "yaml"),  # not polars, which starts a thread of its own
    ]
)


def run(
    command: Sequence[str],
    *,
    cwd: Path | str = ".",
    env: Mapping[str, str] | None = None,
    timeout: float = 300.0,
) -> subprocess.CompletedProcess[str]:
    """Do what ``subprocess.run`` does with a command that begins with ``sys.executable``.

    What follows is ``-c`` and code, ``-m`` and a module, or a script, and its arguments.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = (list(command[1:]), str(Path(cwd).resolve()), dict(env or os.environ))
        process = PROCESSES.Process(target=_work, args=(*given, str(out), str(err)))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout, out.read_text(), err.read_text())
        words = out.read_text(), err.read_text()
        return subprocess.CompletedProcess(command, process.exitcode, *words)


def _work(words: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    for number, path in enumerate((os.devnull, out, err)):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    atexit._clear()
    try:
        _execute(*words)
    finally:
        atexit._run_exitfuncs()  # a process of multiprocessing ends without them


def _execute(kind: str, *words: str) -> None:
    if kind == "-m":
        sys.argv = list(words)
        sys.path.insert(0, "")
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *words[1:]]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = [kind, *words]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")
