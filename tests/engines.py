"""Both engines of the kernels; the compiled one is skipped where it was not built."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

import pytest


def require_engine(name):
    """Return the module of an engine."""
    if name == "compiled" and find_spec("trueup._kernels.loops") is None:
        if os.environ.get("TRUEUP_REQUIRE_SERVICES") == "1":
            pytest.fail("the loops in C must be built where TRUEUP_REQUIRE_SERVICES=1")
        pytest.skip("the loops in C are not built: install gcc or clang, then `pip install -e .`")
    return import_module(f"trueup._kernels.{name}_engine")


@pytest.fixture(params=["compiled", "numpy"])
def kernels(request, monkeypatch):
    """Let trueup use an engine, and return it."""
    return use_engine(request.param, monkeypatch)


def use_engine(name, monkeypatch):
    """Let trueup use an engine until the test ends, and return it."""
    module = require_engine(name)
    monkeypatch.setattr("trueup._kernels.engine", module)
    return module
