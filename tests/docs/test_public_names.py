"""Every public name has a docstring with an example that runs, and a place in the reference."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))
from hooks import MODULES, REFERENCE, public_names  # noqa: E402

PACKAGES = [package for page in REFERENCE.values() for package, _ in page]
SINGLE = [module for page in MODULES.values() for module in page]
FACES = {package: face for page in REFERENCE.values() for package, face in page}


def names_of(package: str) -> list[str]:
    module = import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(name for name in listed if not name.startswith("_"))
    own = [name for name, value in vars(module).items() if _is_from(value, package)]
    return sorted(name for name in own if not name.startswith("_"))


def _is_from(value: object, module: str) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module


@pytest.mark.parametrize("package", [*PACKAGES, *SINGLE])
def test_every_public_name_has_an_example(package):
    module = import_module(package)
    documented = [name for name in names_of(package) if callable(getattr(module, name))]
    assert documented
    without = [
        name for name in documented if ">>>" not in (inspect.getdoc(getattr(module, name)) or "")
    ]
    assert without == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    in_reference = {name for name, _ in public_names(FACES[package])}
    assert set(names_of(package)) <= in_reference
