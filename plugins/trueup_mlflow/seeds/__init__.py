"""Training seeds of one pipeline: the project backend, and what the parent of seeds says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup_mlflow.seeds.log_seeds import log_seed_summary as log_seed_summary
    from trueup_mlflow.seeds.log_seeds import summary_items as summary_items

_HOME = {
    "log_seed_summary": "log_seeds",
    "summary_items": "log_seeds",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup_mlflow.seeds' has no attribute {name!r}")
    value = getattr(import_module(f"trueup_mlflow.seeds.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
