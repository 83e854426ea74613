"""What all tests share: a server, and that the globals of MLflow are as they were found."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest
from tests.engines import kernels as kernels
from tests.postgresql import postgresql_url as postgresql_url  # one server for all tests
from tests.warm import PYTHON  # which starts its server, before the workers of a test run

CORE = Path(__file__).parent / "trueup"

# The same examples in every run, at whatever speed: a change fails by what it changes alone. Others
# are drawn with `pytest --hypothesis-profile=default`.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")


def pytest_configure():
    """Hear SIGINT, which a script in the background, nohup and many CI systems have ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def quick_programs(monkeypatch):
    """Let what the code under test starts be forks; named first, before fixtures that start it."""
    monkeypatch.setattr(sys, "executable", PYTHON)


def pytest_collection_finish():
    """Look for garbage among new objects only, which saves a twentieth of the time."""
    gc.set_threshold(10_000, 10, 100)
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Run the quick files of the core last: a worker that ends with a long one ends alone."""
    items.sort(key=lambda item: item.path.is_relative_to(CORE))


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
