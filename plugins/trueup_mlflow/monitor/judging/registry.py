"""What the registry says of monitored versions: their checks, thresholds and aliases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trueup_mlflow.monitor.judging.threshold import kept_threshold
from trueup_mlflow.write.monitor_items import CHECK_URI_TAG, CHECKED_URI_TAG


@dataclass(frozen=True)
class Checked:
    """What ``init`` left of a version: its threshold, and when its check was made in ms."""

    fail_above: float | None
    since: int


def checked_versions(models: Collection[str]) -> dict[tuple[str, str], Checked]:
    """Return each version with a check that is in the registry.

    ``models`` are those that are looked at where the registry cannot search by tags.
    """
    try:
        search = mlflow.search_model_versions
        found = search(filter_string=f"tags.`{CHECK_URI_TAG}` LIKE '%'")
        checks = search(filter_string=f"tags.`{CHECKED_URI_TAG}` LIKE '%'")
        made = {f"models:/{one.name}/{one.version}": one.creation_timestamp for one in checks}
        found = [one for one in found if one.tags[CHECK_URI_TAG] in made]
    except MlflowException:  # Unity Catalog finds by a model's name alone: no word of its check
        of_models = (mlflow.search_model_versions(filter_string=f"name='{m}'") for m in models)
        found = [one for versions in of_models for one in versions if CHECK_URI_TAG in one.tags]
        made = {one.tags[CHECK_URI_TAG]: one.last_updated_timestamp for one in found}
    return {
        (one.name, str(one.version)): Checked(
            kept_threshold(one.tags), made[one.tags[CHECK_URI_TAG]]
        )
        for one in found
    }


def aliases_of_models(models: Collection[str], client: MlflowClient) -> dict[str, dict[str, str]]:
    """Return the version of each alias of each model, in one request where the registry can."""
    try:
        found = [one for one in mlflow.search_registered_models() if one.name in models]
        return {one.name: _text(one.aliases) for one in found}
    except MlflowException:  # Unity Catalog gives the aliases of one model at a time
        return {name: _aliases_of(name, client) for name in models}


def _aliases_of(name: str, client: MlflowClient) -> dict[str, str]:
    try:
        return _text(client.get_registered_model(name).aliases)
    except MlflowException:  # the model was deleted, its monitor runs were not
        return {}


def _text(aliases: Mapping[Any, Any]) -> dict[str, str]:
    return {str(alias): str(version) for alias, version in aliases.items()}
