"""The check of a model version in the registry: train, log, register, link, load."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mlflow
import numpy as np
import pandas as pd
from mlflow.artifacts import download_artifacts
from mlflow.models import get_model_info
from mlflow.tracking import MlflowClient

from trueup import __version__
from trueup.errors import InvalidInputError
from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.inputs import finite_vector, is_binary
from trueup_mlflow.monitor.registered_model import LoadedModel, RegisteredVersion
from trueup_mlflow.monitor.store import experiment_of
from trueup_mlflow.write.items import ROLE_TAG, VERSION_TAG
from trueup_mlflow.write.monitor_items import (
    CHECK_ID_TAG,
    CHECK_ROLE,
    CHECK_URI_TAG,
    CHECKED_URI_TAG,
    MODEL_TAG,
    VERSION_OF_MODEL_TAG,
    check_alias,
    check_name,
)

ReferenceKind = Literal["held-out", "train"]
_CODE = Path(__file__).with_name("check_model_code.py")


@dataclass(frozen=True)
class Schema:
    """What ``init`` was told about the data: names of columns, and whether labels are 0 and 1."""

    target: str
    row_id: str | None
    features: tuple[str, ...]
    binary: bool
    means: dict[str, float]
    spreads: dict[str, float]

    def features_of(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Return the feature columns of a batch.

        Raises
        ------
        InvalidInputError
            If one is missing or there are no rows.
        """
        missing = [name for name in self.features if name not in batch]
        if missing:
            raise InvalidInputError(
                f"batch must have the columns {list(self.features)}; got none of {missing}. "
                "Pass the features that the reference had."
            )
        if batch.empty:
            raise InvalidInputError("batch must hold rows; got none. Check where they come from.")
        return batch[list(self.features)]

    def moved(self, features: pd.DataFrame, top: int = 5) -> tuple[tuple[str, float], ...]:
        """Return the numbers whose mean moved most, in the reference's standard deviations."""
        shifts = {
            name: float((features[name].mean() - self.means[name]) / self.spreads[name])
            for name in self.means
        }
        finite = [(name, shift) for name, shift in shifts.items() if np.isfinite(shift)]
        return tuple(sorted(finite, key=lambda pair: -abs(pair[1]))[:top])


@dataclass(frozen=True)
class Check:
    """A loaded check."""

    consensus: ConsensusEstimator
    one_step: OneStepCheckModel
    schema: Schema


def describe_reference(reference: pd.DataFrame, target: str, row_id: str | None) -> Schema:
    """Return the schema of a labelled reference.

    Raises
    ------
    InvalidInputError
        If the target or the row id is not a column, or no feature is left.
    """
    for name in (target, *([row_id] if row_id else [])):
        if name not in reference:
            raise InvalidInputError(
                f"reference must have the column {name!r}; got {list(reference.columns)}. "
                "Check the spelling."
            )
    features = tuple(str(name) for name in reference.columns if name not in (target, row_id))
    if not features:
        raise InvalidInputError("reference must have features; got none. Pass all columns.")
    numeric = reference[list(features)].select_dtypes("number")
    spreads = numeric.std().replace(0.0, 1.0).fillna(1.0)
    labels = finite_vector("target", reference[target])
    return Schema(
        target=target,
        row_id=row_id,
        features=features,
        binary=is_binary(labels),
        means={str(name): float(value) for name, value in numeric.mean().fillna(0.0).items()},
        spreads={str(name): float(value) for name, value in spreads.items()},
    )


def train_check(
    model: LoadedModel, reference: pd.DataFrame, schema: Schema, reference_is: ReferenceKind
) -> Check:
    """Fit the consensus and the paper's L on a labelled reference."""
    features, labels = schema.features_of(reference), reference[schema.target].to_numpy()
    prediction = model.predict(features, binary=schema.binary)
    estimator = model.estimator if reference_is == "train" else None
    consensus = ConsensusEstimator(estimator, reference=reference_is)
    consensus.fit(features, prediction, labels)
    one_step = OneStepCheckModel().fit(features, prediction, labels)
    return Check(consensus, one_step, schema)


def register_check(check: Check, version: RegisteredVersion, client: MlflowClient) -> str:
    """Log the check in a run of its own, register it and link both; return its URI."""
    with tempfile.TemporaryDirectory() as folder, _own_run(version, client) as run_id:
        paths = {name: str(Path(folder) / f"{name}.npz") for name in ("consensus", "one_step")}
        check.consensus.save(paths["consensus"])
        check.one_step.save(paths["one_step"])
        info = mlflow.pyfunc.log_model(
            name="check",
            python_model=str(_CODE),
            artifacts=paths,
            metadata={"trueup_schema": vars(check.schema)},
            pip_requirements=[f"trueup[torch,sklearn]=={__version__}"],
        )
    registered = mlflow.register_model(info.model_uri, check_name(version.name))
    uri = f"models:/{registered.name}/{registered.version}"
    client.set_registered_model_alias(
        registered.name, check_alias(version.version), registered.version
    )
    client.set_model_version_tag(registered.name, registered.version, CHECKED_URI_TAG, version.uri)
    client.set_model_version_tag(version.name, version.version, CHECK_URI_TAG, uri)
    if version.model_id is not None and info.model_id is not None:
        client.set_logged_model_tags(info.model_id, {CHECK_ID_TAG: version.model_id})
    client.set_tag(run_id, CHECK_URI_TAG, uri)
    return uri


def load_check(version: RegisteredVersion) -> Check:
    """Return the check that ``init`` registered for the version.

    The arrays of the check are read; the code that is stored beside them is not run.

    Raises
    ------
    InvalidInputError
        If there is none, or it is damaged.
    """
    uri = check_uri(version)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(download_artifacts(artifact_uri=uri, dst_path=folder), "artifacts")
        consensus = ConsensusEstimator.load(files / "consensus.npz")
        one_step = OneStepCheckModel.load(files / "one_step.npz")
    return Check(consensus, one_step, load_schema(version))


def load_schema(version: RegisteredVersion) -> Schema:
    """Return what ``init`` was told about the data of the version; no model is loaded.

    Raises
    ------
    InvalidInputError
        If the version has no check.
    """
    metadata = get_model_info(check_uri(version)).metadata or {}
    stored = dict(metadata["trueup_schema"])
    return Schema(**{**stored, "features": tuple(stored["features"])})


def check_uri(version: RegisteredVersion) -> str:
    """Return the URI of the check of a version: one that the registry knows as this version's.

    Raises
    ------
    InvalidInputError
        If there is none, or the version's tag points to any other model.
    """
    uri = version.tags.get(CHECK_URI_TAG)
    if uri is None:
        raise InvalidInputError(
            f"model_uri must be a version with a check; got {version.uri!r}. Make one with: "
            f"trueup monitor init {version.uri} --reference FILE --target COLUMN."
        )
    name = check_name(version.name)
    own = re.fullmatch(rf"models:/{re.escape(name)}/([0-9]+)", uri)
    if own is None:
        raise _not_its_own(version, uri)
    if MlflowClient().get_model_version(name, own[1]).tags.get(CHECKED_URI_TAG) != version.uri:
        raise _not_its_own(version, uri)
    return uri


def _not_its_own(version: RegisteredVersion, uri: str) -> InvalidInputError:
    return InvalidInputError(
        f"{CHECK_URI_TAG} of {version.uri} must be a version of {check_name(version.name)!r} that "
        f"was made for it; got {uri!r}. Somebody has changed the tag: make the check again with "
        f"trueup monitor init {version.uri} --reference FILE --target COLUMN."
    )


@contextmanager
def _own_run(version: RegisteredVersion, client: MlflowClient) -> Iterator[str]:
    """Yield a run of the check's training beside whatever run the user has open."""
    with mlflow.start_run(
        experiment_id=experiment_of(version.name, client),
        run_name=f"check of version {version.version}",
        nested=mlflow.active_run() is not None,
        tags={
            ROLE_TAG: CHECK_ROLE,
            MODEL_TAG: version.name,
            VERSION_OF_MODEL_TAG: version.version,
            VERSION_TAG: __version__,
        },
    ) as run:
        yield str(run.info.run_id)
