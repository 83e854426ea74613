"""``trueup ui`` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress

import pytest
from click.testing import CliRunner
from tests.trueup_ui.conftest import HOSTILE
from tests.trueup_ui.test_server import ask
from tests.warm import PYTHON

from trueup.errors import InvalidInputError
from trueup_cli.app import app
from trueup_ui.read.studies import open_study_storage


def started(uri):
    """Return a process that serves, and its port; a port that somebody else took is left to him."""
    command = [PYTHON, "-c", "from trueup_cli import main; main()", "ui"]
    for _ in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            [*command, "--tracking-uri", uri, "--port", str(port), "--host", "0.0.0.0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if answers(f"http://127.0.0.1:{port}/static/icon.svg", process):
            return process, port
        _, errors = process.communicate()
        assert "address already in use" in errors, errors
    raise AssertionError("no port was free")


def answers(address, process):
    deadline = time.monotonic() + 300
    while process.poll() is None:
        assert time.monotonic() < deadline
        with suppress(OSError), urllib.request.urlopen(address):
            return True
        time.sleep(0.1)
    return False


def test_the_command_serves_warns_of_an_open_host_and_ends_quietly(filled):
    process, port = started(filled.uri)
    assert ask(f"http://127.0.0.1:{port}/experiment/{filled.experiment}")[0] == 200
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert f"trueup on http://0.0.0.0:{port}" in output
    assert errors.startswith("warning: whoever reaches 0.0.0.0")
    assert "Traceback" not in errors


def test_a_storage_that_is_not_there_is_refused_and_not_created(tmp_path):
    for where in (str(tmp_path / "no.journal"), "nodriver://x", str(tmp_path)):
        with pytest.raises(InvalidInputError, match="study_storage must hold studies"):
            open_study_storage(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("subject", "options", "said"),
    [
        (
            HOSTILE[4],
            ("--metric", "nope"),
            "metric must be a vanilla key of the runs; got 'nope'",
        ),
        (HOSTILE[4], ("--by", "rate"), "Pass param:rate to group by that parameter"),
        (HOSTILE[4], ("--by", "param:nope"), "by must name what the runs have"),
        (HOSTILE[4], ("--output", "nowhere/a.html"), "output must be in a folder that exists"),
        ("models:/demand/1", ("--metric", "log_loss"), "must be an experiment where --metric"),
    ],
)
def test_a_file_is_not_written_by_another_choice_than_was_asked(
    filled, tmp_path, monkeypatch, subject, options, said
):
    monkeypatch.chdir(tmp_path)
    where = ("--output", "a.html", "--tracking-uri", filled.uri)
    ran = CliRunner().invoke(app, ["report", subject, *where, *options])
    assert ran.exit_code == 2, ran.output
    assert said in " ".join(ran.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_compares_by_the_metric_that_was_asked(filled, tmp_path):
    file = tmp_path / "a.html"
    asked = ("--metric", "log_loss", "--tracking-uri", filled.uri)
    ran = CliRunner().invoke(app, ["report", HOSTILE[4], "--output", str(file), *asked])
    assert ran.exit_code == 0, ran.output
    assert "calibrated_log_loss" in file.read_text()
