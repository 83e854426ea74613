"""A registered model version: which one a URI means."""

from __future__ import annotations

import re
from dataclasses import dataclass

import mlflow
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trueup.errors import InvalidInputError
from trueup_mlflow.write.runs import store_of

_URI = re.compile(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+|latest)|@(?P<alias>.+))")


@dataclass(frozen=True)
class RegisteredVersion:
    """One version of a registered model, and the LoggedModel that was registered."""

    name: str
    version: str
    model_id: str | None
    tags: dict[str, str]

    @property
    def uri(self) -> str:
        return f"models:/{self.name}/{self.version}"


def resolve(model_uri: str, client: MlflowClient) -> RegisteredVersion:
    """Return the version that ``models:/NAME/VERSION`` or ``models:/NAME@ALIAS`` means now.

    ``models:/NAME/latest`` is the newest one, as in MLflow; what the registry lacks is refused.
    """
    match = _URI.fullmatch(model_uri)
    if match is None:
        raise InvalidInputError(
            "model_uri must be models:/NAME/VERSION, models:/NAME/latest or models:/NAME@ALIAS",
            repr(model_uri),
            f"{_way_out(model_uri)}",
        )
    name = match["name"]
    try:
        if match["version"] == "latest":
            found = _latest(name, client)
        elif match["alias"]:
            found = client.get_model_version_by_alias(name, match["alias"])
        else:
            found = client.get_model_version(name, match["version"])
        model_id = mlflow.models.get_model_info(f"models:/{name}/{found.version}").model_id
    except MlflowException as failure:
        raise InvalidInputError(
            "model_uri must be a registered model version",
            f"{model_uri!r}: {failure.message.rstrip('.')}",
            f"Check name and version. {store_of(client)}",
        ) from failure
    return RegisteredVersion(name, str(found.version), model_id, dict(found.tags))


def _latest(name: str, client: MlflowClient) -> ModelVersion:
    versions = client.search_model_versions(f"name='{name}'")
    if not versions:
        raise MlflowException(f"Registered Model with name={name} has no version")
    return max(versions, key=lambda version: int(version.version))


def _way_out(model_uri: str) -> str:
    if re.fullmatch(r"models:/m-[0-9a-f]{32}", model_uri):  # MLflow's own ids of logged models
        return "It is a logged model: register it, and give name and version."
    named = re.fullmatch(r"(?:models:/)?([^/@:]+)[/@]?", model_uri)
    if named:
        return f"Say which version: models:/{named[1]}/latest is the newest."
    other = re.fullmatch(r"models:/([^/@]+)/([^/@]+)/?", model_uri)
    if other and other[2].isdigit():
        return f"Write it as models:/{other[1]}/{other[2]}."
    if other:
        return f"A name of a version is an alias, models:/{other[1]}@{other[2]}."
    return "Register the model first."
