"""Trueup for MLflow: calibrated metrics beside the vanilla ones in every run.

Importing the package loads the standard library only: each public name is imported when it is first
used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup_mlflow.autolog import autolog as autolog
    from trueup_mlflow.backfill import backfill as backfill
    from trueup_mlflow.calibrated_model import log_calibrated_model as log_calibrated_model
    from trueup_mlflow.compare_runs import compare_runs as compare_runs
    from trueup_mlflow.log_calibrators import log_calibrators as log_calibrators
    from trueup_mlflow.log_evaluation import log_evaluation as log_evaluation
    from trueup_mlflow.log_predictions import log_predictions as log_predictions
    from trueup_mlflow.log_resampling import log_resampling as log_resampling
    from trueup_mlflow.log_study import log_study as log_study

_HOME = {
    "autolog": "autolog",
    "backfill": "backfill",
    "compare_runs": "compare_runs",
    "log_calibrated_model": "calibrated_model",
    "log_calibrators": "log_calibrators",
    "log_evaluation": "log_evaluation",
    "log_predictions": "log_predictions",
    "log_resampling": "log_resampling",
    "log_study": "log_study",
}

__all__ = sorted(_HOME)


class _Package(ModuleType):
    """A package whose functions are not hidden by the modules of the same name.

    The import system binds each imported submodule as an attribute of its package, so that
    ``trueup_mlflow.log_evaluation`` would be the module once any module has imported from it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trueup_mlflow' has no attribute {name!r}")
    value = getattr(import_module(f"trueup_mlflow.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
