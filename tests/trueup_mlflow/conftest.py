"""Real stores for the tests: SQLite files under tmp_path, and a server on loopback.

Everything is switched by environment variables, so that nothing is left in MLflow's globals.
"""

from __future__ import annotations

import contextlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import mlflow
import pytest
from mlflow import MlflowClient
from tests.databases import new_database
from tests.mlflow_server import mlflow_server

EXPERIMENT = "tests"


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
    files = ("--artifacts-destination", str(folder / "artifacts"))
    with (
        mlflow_server(folder, new_database(folder), *files) as address,
        _counting_proxy(address) as server,
    ):
        yield server


@pytest.fixture
def server(_server, tmp_path, monkeypatch) -> Iterator[Server]:
    """A real ``mlflow server``, which is the current store; its requests are counted."""
    with _as_current_store(_server.uri, tmp_path, monkeypatch):
        _server.requests.clear()
        yield _server
        _server.fault = lambda _path, _body: None


@contextlib.contextmanager
def hanging(server: Server, since: bytes = b"", timeout: int = 1) -> Iterator[list[str]]:
    """Leave each request unanswered, from one that holds a word on; yield the paths of them.

    The client waits for ``timeout`` seconds, for the answers before that one too.
    """
    hung: list[str] = []
    over = Event()

    def hangs(path: str, body: bytes) -> int | None:
        if since not in body and not hung:
            return None
        hung.append(path)
        over.wait()
        return 500

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", str(timeout))
        server.fault = hangs
        try:
            yield hung
            while not hung:  # on a busy machine the client gives up before the request is read
                time.sleep(0.02)
        finally:
            server.fault = lambda _path, _body: None
            over.set()


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
