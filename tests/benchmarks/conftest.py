"""The scripts of the reproduction import each other by name, from their own folder."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
PARTS = (
    "data",
    "layers",
    "networks",
    "training",
    "pipelines",
    "tables",
    "compare",
    "report",
    "figures",
)


@pytest.fixture(scope="module")
def click():
    """The modules of the click tables: ``click.data`` and so on, ``click.script`` the command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        before = set(sys.modules)
        modules = {part: import_module(f"click_models_{part}") for part in PARTS}
        yield SimpleNamespace(script=import_module("click_models"), **modules)
        for name in set(sys.modules) - before:
            if name.startswith("click_models") or name == "field_aware_data":
                del sys.modules[name]
