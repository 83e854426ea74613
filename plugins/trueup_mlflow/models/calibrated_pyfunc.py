"""The code of a calibrated model in MLflow: constant, so that its hash tells it from any other."""

from __future__ import annotations

from mlflow.models import set_model

from trueup_mlflow.models.calibrated_model import CalibratedPyfunc

set_model(CalibratedPyfunc())
