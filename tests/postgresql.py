"""A PostgreSQL server on loopback for the tests that need one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest


def _postgresql_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgresql_url(tmp_path_factory):
    """A PostgreSQL server on loopback, run as another user where the tests run as root."""
    programs = _postgresql_programs()
    if programs is None:
        if os.environ.get("TRUEUP_REQUIRE_SERVICES") == "1":
            pytest.fail("PostgreSQL must be installed where TRUEUP_REQUIRE_SERVICES=1")
        pytest.skip("PostgreSQL isn't installed")
    given = os.environ.get("TRUEUP_POSTGRESQL_URL")
    if given:
        yield given
        return
    root = os.geteuid() == 0
    folder = (
        Path("/tmp") / f"trueup-postgresql-{os.getpid()}" if root else tmp_path_factory.mktemp("pg")
    )
    folder.mkdir(exist_ok=True)
    if root:
        shutil.chown(folder, "postgres")
    prefix = ["runuser", "-u", "postgres", "--"] if root else []
    port = _free_port()

    def call(program: str, *arguments: str) -> None:
        command = [*prefix, str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    call("initdb", "-A", "trust", "-U", "trueup")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://trueup@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)
