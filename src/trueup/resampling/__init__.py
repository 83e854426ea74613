"""The generalization error of an inducer, estimated by resampling.

An *inducer* is everything that turns a training set into a model: a scikit-learn estimator or a
training function. What is estimated is the mean error over training sets of one size, not the
risk of one model at hand.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.resampling.bootstrap import Bootstrap as Bootstrap
    from trueup.resampling.estimate import GEEstimate as GEEstimate
    from trueup.resampling.generalization import generalization_error as generalization_error
    from trueup.resampling.interval import corrected_t_interval as corrected_t_interval
    from trueup.resampling.nested import nested_resampling as nested_resampling

_HOME = {
    "Bootstrap": "bootstrap",
    "GEEstimate": "estimate",
    "corrected_t_interval": "interval",
    "generalization_error": "generalization",
    "nested_resampling": "nested",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup.resampling' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"trueup.resampling.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("joblib", "sklearn"):
            raise ImportError(
                "trueup.resampling needs scikit-learn. Run: pip install 'trueup[sklearn]'"
            ) from error
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
