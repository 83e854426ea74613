"""The check of a registered model as a model of MLflow: arrays without pickle.

It is a flavor of its own because ``mlflow.pyfunc.log_model`` looks at every file of every package
that is installed, which takes as long as a fit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import yaml
from mlflow.models import Model

from trueup import __version__
from trueup.monitoring import ConsensusEstimator, OneStepCheckModel

PREDICTION = "trueup_prediction"
ARRAYS = "artifacts"
_CONSENSUS, _ONE_STEP = f"{ARRAYS}/consensus.npz", f"{ARRAYS}/one_step.npz"
_ENVIRONMENT, _REQUIREMENTS = "python_env.yaml", "requirements.txt"


class CheckModel:
    """Estimates the error of a model from features and the model's predictions.

    The input is a data frame of the reference's features with a column ``trueup_prediction``;
    the output is the estimate as a dictionary.
    """

    def __init__(self, consensus: ConsensusEstimator, one_step: OneStepCheckModel) -> None:
        self.consensus = consensus
        self.one_step = one_step

    def predict(self, model_input: pd.DataFrame) -> dict[str, Any]:
        """Return ``MSEEstimate.to_dict()`` and the paper's estimate under ``one_step``."""
        features = model_input.drop(columns=PREDICTION)
        prediction = model_input[PREDICTION].to_numpy()
        estimate = self.consensus.estimate(features, prediction)
        one_step = self.one_step.estimate(features, prediction)
        return {**estimate.to_dict(), "one_step": one_step.value / self.consensus.form.unit}


def save_model(path: str, mlflow_model: Model, check: CheckModel) -> None:
    """Write a check as ``mlflow.models.Model.log`` asks a flavor to."""
    folder = Path(path)
    (folder / ARRAYS).mkdir(parents=True)
    check.consensus.save(folder / _CONSENSUS)
    check.one_step.save(folder / _ONE_STEP)
    needed = [f"mlflow=={mlflow.__version__}", f"trueup[torch,sklearn]=={__version__}"]
    (folder / _REQUIREMENTS).write_text("\n".join(needed) + "\n")
    python = ".".join(map(str, sys.version_info[:3]))
    environment = {"python": python, "dependencies": [f"-r {_REQUIREMENTS}"]}
    (folder / _ENVIRONMENT).write_text(yaml.safe_dump(environment))
    mlflow.pyfunc.add_to_model(mlflow_model, __name__, python_env=_ENVIRONMENT)
    mlflow_model.save(str(folder / "MLmodel"))


def load_check_model(folder: Path) -> CheckModel:
    """Return the check in a folder, also one that an earlier release wrote with code beside it.

    The arrays are read; no code that is stored there is run.
    """
    return CheckModel(
        ConsensusEstimator.load(folder / _CONSENSUS), OneStepCheckModel.load(folder / _ONE_STEP)
    )


def _load_pyfunc(path: str) -> CheckModel:
    """Return the check for ``mlflow.pyfunc.load_model``."""
    return load_check_model(Path(path))
