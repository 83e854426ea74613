"""Real stores for the tests: SQLite files under tmp_path, and a server on loopback.

Everything is switched by environment variables, so that nothing is left in MLflow's globals.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import mlflow
import pytest
from mlflow import MlflowClient
from tests.databases import new_database

EXPERIMENT = "tests"
# Five more processes of MLflow's, which would wait for jobs that no test gives them.
_WITHOUT_JOBS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
_START_TIMEOUT = 120.0  # seconds; a start takes 5 to 20 on a busy machine


@pytest.fixture
def client(tmp_path, monkeypatch) -> Iterator[MlflowClient]:
    """The client of a fresh SQLite store, which is also that of the fluent functions."""
    with _as_current_store(new_database(tmp_path), tmp_path, monkeypatch) as current:
        yield current


@contextlib.contextmanager
def _as_current_store(uri: str, folder: Path, monkeypatch) -> Iterator[MlflowClient]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    current = MlflowClient(uri)
    if current.get_experiment_by_name(EXPERIMENT) is None:
        is_file = uri.startswith("sqlite")
        location = (folder / "artifacts").as_uri() if is_file else None
        current.create_experiment(EXPERIMENT, artifact_location=location)
    yield current
    while mlflow.active_run() is not None:
        mlflow.end_run()


@dataclass
class Server:
    """A tracking server behind a proxy that writes down each request, and may refuse some.

    ``fault`` takes the API path and the body, and returns the status of a refusal or None.
    """

    uri: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, bytes], int | None] = lambda _path, _body: None

    def paths(self) -> list[str]:
        """Return the API paths asked for, without their common start."""
        return [path.partition("?")[0].rpartition("/mlflow/")[2] for _, path in self.requests]


@pytest.fixture(scope="session")
def _server(tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    port = _free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", new_database(folder), "--workers", "1"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=os.environ | _WITHOUT_JOBS
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", process)
            with _counting_proxy(f"http://127.0.0.1:{port}") as server:
                yield server
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def server(_server, tmp_path, monkeypatch) -> Iterator[Server]:
    """A real ``mlflow server``, which is the current store; its requests are counted."""
    with _as_current_store(_server.uri, tmp_path, monkeypatch):
        _server.requests.clear()
        yield _server
        _server.fault = lambda _path, _body: None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise TimeoutError(f"{url} did not answer in {_START_TIMEOUT} s")


@contextlib.contextmanager
def _counting_proxy(target: str) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            seen.requests.append((self.command, self.path))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status = seen.fault(self.path.partition("?")[0].rpartition("/mlflow/")[2], body)
            if status is not None:
                refusal = b'{"error_code": "INTERNAL_ERROR", "message": "refused on purpose"}'
                self._answer(status, {}, refusal)
                return
            headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            request = urllib.request.Request(
                target + self.path, body or None, headers, method=self.command
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self._answer(answer.status, answer.headers, answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    self._answer(error.code, error.headers, error.read())

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

        def _answer(self, status, headers, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", headers.get("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments) -> None:
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen = Server(f"http://127.0.0.1:{proxy.server_address[1]}")
    Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield seen
    finally:
        proxy.shutdown()
        proxy.server_close()
