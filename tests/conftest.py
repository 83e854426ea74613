"""What every test leaves as it found it: the globals of MLflow, which outlive a test."""

from __future__ import annotations

import os
import sys

import pytest


@pytest.fixture(autouse=True)
def _mlflow_globals_are_restored():
    """Take back the tracking URI and the environment that a test, or the code it runs, has set."""
    before = {name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")}
    yield
    if "mlflow" in sys.modules:
        sys.modules["mlflow"].set_tracking_uri(None)
        sys.modules["mlflow"].set_registry_uri(None)
        # `set_experiment` has no way back of its own.
        sys.modules["mlflow.tracking.fluent"]._active_experiment_id = None
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        del os.environ[name]
    os.environ.update(before)
