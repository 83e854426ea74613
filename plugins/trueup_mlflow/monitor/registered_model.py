"""A registered model version: which one a URI means, and its predictions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import mlflow
import numpy as np
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.monitoring.out_of_fold import is_refittable
from trueup_mlflow.models.raw_model import raw_model
from trueup_mlflow.write.reasons import reason_of

_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>.+))")


@dataclass(frozen=True)
class RegisteredVersion:
    """One version of a registered model.

    Attributes
    ----------
    name, version : str
        As in ``models:/<name>/<version>``.
    model_id : str or None
        The LoggedModel that was registered.
    tags : dict
        Tags of the version.
    """

    name: str
    version: str
    model_id: str | None
    tags: dict[str, str]

    @property
    def uri(self) -> str:
        """The URI that always means this version."""
        return f"models:/{self.name}/{self.version}"


def resolve(model_uri: str, client: MlflowClient) -> RegisteredVersion:
    """Return the version that ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS`` means now.

    Raises
    ------
    InvalidInputError
        If the URI has another form or the registry does not know the version.
    """
    match = _URI.fullmatch(model_uri)
    if match is None:
        raise InvalidInputError(
            f"model_uri must be models:/NAME/VERSION or models:/NAME@ALIAS; got {model_uri!r}. "
            "Register the model first."
        )
    name = match["name"]
    try:
        if match["alias"]:
            found = client.get_model_version_by_alias(name, match["alias"])
        else:
            found = client.get_model_version(name, match["version"])
        model_id = mlflow.models.get_model_info(f"models:/{name}/{found.version}").model_id
    except MlflowException as failure:
        raise InvalidInputError(
            f"model_uri must be a registered model version; got {model_uri!r}: "
            f"{failure.message.rstrip('.')}. Check name, version and tracking URI."
        ) from failure
    return RegisteredVersion(name, str(found.version), model_id, dict(found.tags))


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts numbers, or probabilities of class 1."""

    pyfunc: Any

    @classmethod
    def load(cls, uri: str) -> LoadedModel:
        """Load the model of a URI.

        Raises
        ------
        InvalidInputError
            If MLflow cannot load it; nothing has been registered by then.
        """
        try:
            return cls(mlflow.pyfunc.load_model(uri))
        except Exception as failure:  # whatever a flavor raises, the answer to the user is the same
            raise InvalidInputError(
                f"model_uri must be a model that can be loaded here; got {uri!r}: "
                f"{reason_of(failure)}. Install what the model needs."
            ) from failure

    @property
    def estimator(self) -> Any:
        """The scikit-learn-like model inside, or None where it cannot be refitted."""
        raw = raw_model(self.pyfunc)
        return raw if is_refittable(raw) else None

    def predict(self, features: Any, *, binary: bool) -> NDArray[np.float64]:
        """Return one number per row: the probability of class 1 if the target is binary.

        Raises
        ------
        InvalidInputError
            If the model refuses the rows or gives another number of them.
        """
        try:
            if binary and hasattr(self.estimator, "predict_proba"):
                return np.asarray(self.estimator.predict_proba(features), dtype=np.float64)[:, 1]
            values = np.asarray(self.pyfunc.predict(features), dtype=np.float64)
        except Exception as failure:  # a schema that differs reads differently in each flavor
            raise InvalidInputError(
                f"rows must be what the model takes; got columns {list(features.columns)}: "
                f"{reason_of(failure)}. Pass the columns that the model was trained on."
            ) from failure
        return values.reshape(len(features), -1)[:, -1]
