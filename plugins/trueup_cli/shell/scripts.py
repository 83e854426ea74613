"""What a script or a module of the user's defines, by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from difflib import get_close_matches
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from trueup.errors import InvalidInputError


def load_attribute(target: str, what: str) -> Any:
    """Return what ``script.py:name`` or ``package.module:name`` stands for.

    Messages call the target ``what``.
    """
    home, _, name = target.rpartition(":")
    if not home:
        raise InvalidInputError(
            f"{what} must be script.py:name or module:name", repr(target), "Name both."
        )
    module = _script(home, what) if home.endswith(".py") else _module(home, what)
    try:
        return getattr(module, name)
    except AttributeError:
        raise InvalidInputError(
            f"{what} must name a function of {home}", repr(name), _names_of(module, name)
        ) from None


def _script(file: str, what: str) -> ModuleType:
    path = Path(file)
    if not path.is_file():
        raise InvalidInputError(
            f"{what} must name a script that exists",
            f"{file!r}, which is not in {Path.cwd()}",
            "Correct the path.",
        )
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that a process of its own finds it
    spec.loader.exec_module(module)
    return module


def _module(home: str, what: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(home)
    except ModuleNotFoundError as missing:
        if missing.name is None or not home.startswith(missing.name):
            raise  # the module is there, and misses something itself
        raise InvalidInputError(
            f"{what} must name a module that can be imported",
            f"{home!r}: {missing}",
            "Name a script as script.py:name, or install the package.",
        ) from None


def _names_of(module: ModuleType, mistyped: str) -> str:
    """Say what a module defines itself, and which of all of its names may have been meant."""
    found = [
        name
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__
    ]
    near = get_close_matches(mistyped, dir(module), n=1)
    said = [f"It defines {', '.join(found)}."] if found else []
    meant = [f"Did you mean {near[0]}?"] if near else []
    return " ".join([*said, *meant]) or "It defines no function."
