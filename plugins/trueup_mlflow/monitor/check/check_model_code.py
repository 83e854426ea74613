"""The check of a registered model as an MLflow model: code, and arrays without pickle."""

from __future__ import annotations

from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc import PythonModel

from trueup.monitoring import ConsensusEstimator, OneStepCheckModel

PREDICTION = "trueup_prediction"


class CheckModel(PythonModel):
    """Estimates the error of a model from features and the model's predictions.

    The input is a data frame of the reference's features with a column ``trueup_prediction``;
    the output is the estimate as a dictionary.
    """

    def load_context(self, context: Any) -> None:
        """Load both estimators."""
        self.consensus = ConsensusEstimator.load(context.artifacts["consensus"])
        self.one_step = OneStepCheckModel.load(context.artifacts["one_step"])

    def predict(
        self,
        context: Any,  # noqa: ARG002
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return ``MSEEstimate.to_dict()`` and the paper's estimate under ``one_step``."""
        features = model_input.drop(columns=PREDICTION)
        prediction = model_input[PREDICTION].to_numpy()
        estimate = self.consensus.estimate(features, prediction)
        one_step = self.one_step.estimate(features, prediction)
        return {**estimate.to_dict(), "one_step": one_step.value / self.consensus.form.unit}


mlflow.models.set_model(CheckModel())
