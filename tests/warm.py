"""A Python that starts at once: forks of one process that has imported the libraries.

``PYTHON`` stands where ``sys.executable`` would, in tests of what a program does, not of what its
start costs; the folder ``PROGRAMS`` has it as ``python``, with ``mlflow`` and ``trueup``, for a
PATH. Neither MLflow nor trueup is imported beforehand: plugins, hooks and switches are found as
they are in a process of their own. One process serves all workers of a test run.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from multiprocessing import spawn
from pathlib import Path
from types import ModuleType
from typing import NoReturn

LIBRARIES = [  # of programs that use MLflow; not polars, which starts a thread of its own
    *("accelerate", "aiohttp", "alembic.command", "click", "fastapi", "flask"),
    *("importlib_metadata", "jinja2", "matplotlib.pyplot", "opentelemetry.sdk.trace", "optuna"),
    *("pandas", "pyarrow.parquet", "pyspark.sql", "requests", "scipy.optimize", "scipy.stats"),
    *("sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics", "sklearn.pipeline"),
    *("sqlalchemy.orm", "sqlparse", "torch._dynamo", "tqdm", "uvicorn", "yaml"),
    "unsynced",
]
_KNOWN_AS = "TESTS_WARM_PROGRAMS"
_OWN_FILES = 256  # numbers below it are those of the program's files


def _start() -> str:
    folder = tempfile.mkdtemp(prefix="trueup-warm-", dir="/tmp")  # a short path, as sockets need
    gate = socket.socket(socket.AF_UNIX)
    gate.bind(f"{folder}/gate")
    gate.listen(64)
    client = Path(__file__).with_name("warm_client.py").read_text()
    client = f"#!{sys.executable} -IS\n{client}\nmain({folder!r}, {sys.executable!r})\n"
    for name in ("python", "mlflow", "trueup"):
        program = Path(folder, name)
        program.write_text(client)
        program.chmod(0o755)
    command = [sys.executable, __file__, str(gate.fileno()), f"{folder}/python"]
    server = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        pass_fds=[gate.fileno()],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # threads would be missing in the forks
    )
    gate.close()
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.communicate)  # it ends with its input
    os.environ[_KNOWN_AS] = folder  # for the workers of this test run
    return folder


def _serve(gate: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    has_imported = False
    while gate in select.select([gate, sys.stdin], [], [])[0]:
        connection, _ = gate.accept()
        has_imported = has_imported or _import_libraries()
        if os.fork() == 0:
            gate.close()
            _attend(connection)
        connection.close()
        with suppress(ChildProcessError):  # where all have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _import_libraries() -> bool:
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(_OWN_FILES)]
    for name in LIBRARIES:
        importlib.import_module(name)
    for file in kept:
        os.close(file)
    gc.freeze()  # or each collection in a fork copies the memory of all libraries
    return True


def _attend(connection: socket.socket) -> NoReturn:
    """Fork the program, tell its process and then how it ended; it ends with its client."""
    request, files, *_ = socket.recv_fds(connection, 1 << 20, _OWN_FILES)
    while not request.endswith(b"\n"):
        request += connection.recv(1 << 20)
    os.setsid()  # the program is of our group and leads none, as one that a shell script starts
    program = os.fork()
    if program == 0:
        connection.close()
        _become(files, **json.loads(request))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which is for the others of the group
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for file in files:
        os.close(file)
    connection.sendall(b"%d\n" % program)
    threading.Thread(target=_end_with, args=(connection, program), daemon=True).start()
    _, status = os.waitpid(program, 0)
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _end_with(client: socket.socket, program: int) -> None:
    client.recv(1)  # which it never sends
    with suppress(ProcessLookupError):
        if os.getpgid(program) != os.getpgrp():  # it has left us since
            os.kill(program, signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)  # us too


def _become(
    files: list[int],
    words: list[str],
    folder: str,
    environment: dict[str, str],
    numbers: list[int],
    hears_interrupts: bool,
) -> NoReturn:
    import fcntl  # here, since Windows has none

    signal.signal(signal.SIGINT, signal.default_int_handler if hears_interrupts else signal.SIG_IGN)
    free = max(_OWN_FILES, *numbers) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, free) for file in files]
    os.closerange(3, _OWN_FILES)
    for file, number in zip(moved, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    code = _code_of(words)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
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
    except BaseException as error:
        sys.excepthook(*sys.exc_info())
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _execute(kind: str, *words: str) -> None:
    if kind == "-u":
        sys.stdout.reconfigure(write_through=True)
        _execute(*words)
    elif kind == "-m":
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
    sys.executable = sys.argv[2]  # what programs start is as quick
    spawn.set_executable(sys.argv[2])
    _serve(socket.socket(fileno=int(sys.argv[1])))
elif hasattr(os, "fork"):
    PROGRAMS = os.environ.get(_KNOWN_AS) or _start()
    PYTHON = f"{PROGRAMS}/python"
    spawn.set_executable(PYTHON)
else:
    PROGRAMS, PYTHON = os.path.dirname(sys.executable), sys.executable
