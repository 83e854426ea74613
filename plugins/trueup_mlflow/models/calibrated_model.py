"""A calibrated model as an MLflow pyfunc: code and npz beside the base model in its own format."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.artifacts import download_artifacts
from mlflow.models import Model
from mlflow.models.model import ModelInfo
from mlflow.pyfunc import PythonModel
from numpy.typing import NDArray

from trueup import __version__
from trueup.calibrators import CalibratedModel, Calibrator, load_calibrator
from trueup.errors import InvalidInputError

BASE_MODEL = "base_model"
CALIBRATOR = "calibrator"
_CODE = Path(__file__).with_name("calibrated_pyfunc.py")


class CalibratedPyfunc(PythonModel):
    """Predicts with the base model and maps its probabilities.

    The output has the shape of the base model's output: (n,) probabilities of the second class, or
    (n, k) of all classes.
    """

    def load_context(self, context: Any) -> None:
        """Load the base model by its own flavour, and the calibrator without pickle."""
        self._base = mlflow.pyfunc.load_model(context.artifacts[BASE_MODEL])
        self._calibrator = load_calibrator(context.artifacts[CALIBRATOR])
        self._fields = tuple(context.model_config["fields"])

    def predict(
        self,
        context: Any,  # noqa: ARG002 - the signature is MLflow's
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> NDArray[np.float64]:
        """Return calibrated probabilities for the input of the base model.

        Columns that only the calibrator reads are passed to the base model too, unless its
        signature leaves them out.
        """
        proba = np.asarray(self._base.predict(model_input, params=params), dtype=np.float64)
        fields = {name: np.asarray(model_input[name]) for name in self._fields}
        calibrated = self._calibrator.predict_proba(proba, fields=fields)
        return calibrated if proba.ndim == 2 and proba.shape[1] > 1 else calibrated[:, 1]


def log_calibrated_model(
    model_uri: str,
    calibrator: Calibrator | CalibratedModel,
    *,
    name: str = "calibrated_model",
    fields: Sequence[str] | None = None,
    registered_model_name: str | None = None,
    signature: Any = None,
    input_example: Any = None,
) -> ModelInfo:
    """Log a model of the store together with its fitted calibrator, as one pyfunc.

    Parameters
    ----------
    model_uri : str
        The base model in MLflow, whose ``predict`` gives probabilities of shape (n,) or (n, k). Its
        files are copied in their own format.
    calibrator : Calibrator or CalibratedModel
        The fitted calibrator; of a :class:`CalibratedModel` its calibrator and fields are taken.
    name : str
        Name of the logged model.
    fields : sequence of str, optional
        Columns of the input that the calibrator reads; by default those of the
        :class:`CalibratedModel`, or those that the calibrator was fitted with and uses.
    registered_model_name : str, optional
        Register the model under this name.
    signature, input_example : optional
        As in ``mlflow.pyfunc.log_model``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        As of ``mlflow.pyfunc.log_model``.

    Raises
    ------
    InvalidInputError
        If the base model predicts labels.

    Notes
    -----
    Code, JSON and npz: the part that is ours loads with
    ``MLFLOW_ALLOW_PICKLE_DESERIALIZATION=false``. Whether the base model does is up to its flavour.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from trueup.calibrators import ShiftCalibrator
    >>> from trueup_mlflow import log_calibrated_model
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> model = LogisticRegression().fit(X, X[:, 0] > 0)
    >>> calibrator = ShiftCalibrator().fit(model.predict_proba(X), X[:, 0] > 0)
    >>> with mlflow.start_run():
    ...     uri = mlflow.sklearn.log_model(
    ...         model, name="model", pyfunc_predict_fn="predict_proba"
    ...     ).model_uri
    ...     calibrated = log_calibrated_model(uri, calibrator)
    >>> mlflow.pyfunc.load_model(calibrated.model_uri).predict(X).shape[0]
    200
    """
    if isinstance(calibrator, CalibratedModel):
        fields = calibrator.fields if fields is None else fields
        calibrator = calibrator.calibrator_
    fields = calibrator.fields_read_ if fields is None else fields
    with tempfile.TemporaryDirectory() as folder:
        base, stored = Path(folder, BASE_MODEL), Path(folder, CALIBRATOR)
        base.mkdir()
        local = Path(download_artifacts(artifact_uri=model_uri, dst_path=str(base)))
        _require_probabilities(Model.load(str(local)))
        calibrator.save(stored)
        return mlflow.pyfunc.log_model(
            name=name,
            python_model=str(_CODE),
            artifacts={BASE_MODEL: str(local), CALIBRATOR: str(stored)},
            model_config={"fields": list(fields)},
            pip_requirements=_requirements(local),
            registered_model_name=registered_model_name,
            signature=signature,
            input_example=input_example,
        )


def _require_probabilities(model: Model) -> None:
    flavors = model.flavors or {}
    classes = [str(flavor.get("model_class", "")) for flavor in flavors.values()]
    by_sklearn = flavors.get("python_function", {}).get("predict_fn") == "predict"
    if by_sklearn or any(name.endswith("Classifier") for name in classes):
        raise InvalidInputError(
            "model_uri must be a model whose predict gives probabilities",
            "one that gives labels",
            'Log a scikit-learn model with pyfunc_predict_fn="predict_proba", a boosted one '
            "as its booster.",
        )


def _requirements(model: Path) -> list[str]:
    file = model / "requirements.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [*(line for line in lines if line.strip()), f"trueup[mlflow,sklearn]=={__version__}"]
