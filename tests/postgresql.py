"""A PostgreSQL server for the tests that need one, at a socket in a folder of its own.

No other process can have taken a file of that folder, as it can a port.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def _postgresql_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@pytest.fixture(scope="session")
def postgresql_url():
    """The URL of a PostgreSQL server, run as another user where the tests run as root."""
    programs = _postgresql_programs()
    if programs is None:
        if os.environ.get("TRUEUP_REQUIRE_SERVICES") == "1":
            pytest.fail("PostgreSQL must be installed where TRUEUP_REQUIRE_SERVICES=1")
        pytest.skip("PostgreSQL isn't installed")
    given = os.environ.get("TRUEUP_POSTGRESQL_URL")
    if given:
        yield given
        return
    # The path of a socket has at most 107 characters: pytest's own folders may be longer.
    folder = Path(tempfile.mkdtemp(prefix="trueup-postgresql-", dir="/tmp"))
    root = os.geteuid() == 0
    if root:
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    prefix = ["runuser", "-u", "postgres", "--"] if root else []

    def call(program: str, *arguments: str) -> None:
        command = [*prefix, str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    call("initdb", "-A", "trust", "-U", "trueup")
    options = f"-c listen_addresses= -c fsync=off -k {folder}"
    call("pg_ctl", "-w", "-t", "300", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://trueup@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)
