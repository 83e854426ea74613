from __future__ import annotations

import sys

import pytest
from tests.trueup_cli.tune_script import SCRIPT, SPACE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_script.py").write_text(SCRIPT.format(pause=0.0))
    (tmp_path / "space.yaml").write_text(SPACE)
    before = list(sys.path)
    yield tmp_path
    from trueup_cli.tune_run import _train_of

    _train_of.cache_clear()
    sys.path[:] = before
    sys.modules.pop("my_script", None)
