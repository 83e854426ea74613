"""The layout: no circle, no arrow upwards, few floors, and a picture that is current."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))
from draw_architecture import PICTURE, drawing  # noqa: E402
from imports import CORE, circles, floors, imports_of_modules, imports_of_rooms, modules  # noqa: E402

FACES = {name for name, file in modules().items() if file.name in ("__init__.py", "comparison.py")}
"""Packages hand on names, each imported when it is first used; nothing is followed through them."""


def test_no_modules_import_each_other_in_a_circle():
    graph = {
        module: targets - FACES
        for module, targets in imports_of_modules().items()
        if module not in FACES
    }
    assert circles(graph) == []


def test_no_rooms_import_each_other_in_a_circle():
    assert circles(imports_of_rooms()) == []


def test_the_core_has_at_most_nine_floors():
    rooms = {
        room: targets for room, targets in imports_of_rooms().items() if room.startswith(f"{CORE}.")
    }
    assert max(floors(rooms).values()) <= 9


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set(), "c": {"a", "b"}}) == []


def test_the_picture_is_current():
    assert PICTURE.read_text() == drawing(), "run: python docs/site/draw_architecture.py"


def test_the_walks_name_files_that_exist():
    """A file may be named with a folder above it, such as ``read/row_hash.py``."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", page))
    files = [file for root in ("src", "plugins", "docs") for file in (ROOT / root).rglob("*.py")]
    exists = {
        path: any(
            file.name == Path(path).name and set(Path(path).parts) <= set(file.parts)
            for file in files
        )
        for path in named
    }
    assert len(named) > 20
    assert [path for path, found in exists.items() if not found] == []


@pytest.mark.parametrize("face", sorted(FACES))
def test_a_public_name_is_not_hidden_by_a_module(face):
    """Importing ``face.name`` as a module would put the module where the function was."""
    public = getattr(import_module(face), "__all__", [])
    assert [name for name in public if f"{face}.{name}" in modules()] == []
