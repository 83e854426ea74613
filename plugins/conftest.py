"""Docstring examples of the plugins run in a folder and a store of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    yield
    import mlflow

    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(None)
