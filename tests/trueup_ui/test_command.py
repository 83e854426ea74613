"""``trueup ui`` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from tests.trueup_ui.test_server import ask

from trueup.errors import InvalidInputError
from trueup_ui.read.studies import open_study_storage


def test_the_command_serves_warns_of_an_open_host_and_ends_quietly(filled):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from trueup_cli import main; main()",
        "ui",
        "--tracking-uri",
        filled.uri,
    ]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--host", "0.0.0.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/icon.svg"):
                break
        except OSError:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    assert ask(f"http://127.0.0.1:{port}/experiment/{filled.experiment}")[0] == 200
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert f"trueup on http://0.0.0.0:{port}" in output
    assert errors.startswith("warning: whoever reaches 0.0.0.0")
    assert "Traceback" not in errors


def test_a_storage_that_is_not_there_is_refused_and_not_created(tmp_path):
    for where in (str(tmp_path / "no.journal"), "nodriver://x", str(tmp_path)):
        with pytest.raises(InvalidInputError, match="study_storage must hold studies"):
            open_study_storage(where)
    assert list(tmp_path.iterdir()) == []
