from __future__ import annotations

import sys

import pytest
from tests.trueup_cli.tune_script import SCRIPT, SPACE, forget_scripts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_script.py").write_text(SCRIPT.format(pause=0.0))
    (tmp_path / "space.yaml").write_text(SPACE)
    before = list(sys.path)
    yield tmp_path
    forget_scripts()
    sys.path[:] = before
