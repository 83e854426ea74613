"""Trueup for MLflow: calibrated metrics beside the vanilla ones in every run.

Importing the package loads the standard library only: each public name is imported when it is first
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup_mlflow.autologging.session import autolog as autolog
    from trueup_mlflow.callbacks.huggingface import HuggingFaceCallback as HuggingFaceCallback
    from trueup_mlflow.callbacks.keras import KerasCallback as KerasCallback
    from trueup_mlflow.callbacks.lightgbm import LightGBMCallback as LightGBMCallback
    from trueup_mlflow.callbacks.lightning import LightningCallback as LightningCallback
    from trueup_mlflow.callbacks.xgboost import XGBoostCallback as XGBoostCallback
    from trueup_mlflow.compare.compare_runs import compare_runs as compare_runs
    from trueup_mlflow.log.backfill import backfill as backfill
    from trueup_mlflow.log.log_calibrators import log_calibrators as log_calibrators
    from trueup_mlflow.log.log_evaluation import log_evaluation as log_evaluation
    from trueup_mlflow.log.log_predictions import log_predictions as log_predictions
    from trueup_mlflow.log.log_resampling import log_resampling as log_resampling
    from trueup_mlflow.log.log_study import log_study as log_study
    from trueup_mlflow.models.calibrated_model import log_calibrated_model as log_calibrated_model


def __getattr__(name: str) -> Any:
    # Imported here: MLflow loads this package while it is imported itself, whatever ails trueup.
    from trueup.extras import hand_on

    get, names = hand_on(__name__)
    return names() if name == "__all__" else get(name)


def __dir__() -> list[str]:
    return __getattr__("__all__")  # type: ignore[no-any-return]
