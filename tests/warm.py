"""Programs in forks of a process that has imported the libraries, which takes seconds each time.

For tests of what a program does, not of what its start costs. Neither MLflow nor trueup is imported
beforehand: plugins, hooks and switches are found as they are in a process of their own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

LIBRARIES = [  # of programs that use MLflow; not polars, which starts a thread of its own
    *("alembic.command", "click", "fastapi", "importlib_metadata", "jinja2", "matplotlib.pyplot"),
    *("opentelemetry.sdk.trace", "optuna", "pandas", "pyarrow.parquet", "pyspark.sql", "requests"),
    *("scipy.optimize", "scipy.stats", "sklearn.ensemble", "sklearn.linear_model"),
    *("sklearn.metrics", "sklearn.pipeline", "sqlalchemy.orm", "sqlparse", "torch", "tqdm", "yaml"),
    "unsynced",
]


def run(
    command: Sequence[str],
    *,
    cwd: Path | str = ".",
    env: Mapping[str, str] | None = None,
    timeout: int = 300,
) -> subprocess.CompletedProcess[str]:
    """Do what ``subprocess.run`` does with a command that begins with ``sys.executable``.

    What follows is ``-c`` and code, ``-m`` and a module, or a script, and its arguments. After
    ``timeout`` seconds the program is ended by SIGALRM.
    """
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        out, err = (str(Path(folder, name)) for name in ("out", "err"))
        request = {
            "words": [str(word) for word in command[1:]],
            "folder": str(Path(cwd).resolve()),
            "environment": dict(os.environ if env is None else env),
            "files": [os.devnull, out, err],
            "timeout": timeout,
        }
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        words = Path(out).read_text(), Path(err).read_text()
    return subprocess.CompletedProcess(command, code, *words)


@cache
def _server() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen([sys.executable, __file__], **pipes)
    atexit.register(server.communicate)  # it ends with its input
    return server


def _serve() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # or each collection in a fork copies the memory of all libraries
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(
    words: list[str], folder: str, environment: dict[str, str], files: list[str], timeout: int
) -> NoReturn:
    for number, path in enumerate(files):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.alarm(timeout)
    code = _code_of(words)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # to take down all the libraries would take two seconds


def _code_of(words: list[str]) -> int:
    """Execute the words, and return the exit code that the interpreter would end with."""
    try:
        _execute(*words)
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _execute(kind: str, *words: str) -> None:
    if kind == "-m":
        sys.argv = list(words)
        sys.path[0] = os.getcwd()
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *words[1:]]
        sys.path[0] = ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = [kind, *words]
        sys.path[0] = str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    _serve()
