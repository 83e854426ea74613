"""Calibrated metrics and what follows from them: decide, tune, monitor.

``import trueup`` loads no scientific package: each public name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup import errors as errors

__version__ = "0.1.0"

_HOME = {
    "errors": "trueup.errors",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name] == f"trueup.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
