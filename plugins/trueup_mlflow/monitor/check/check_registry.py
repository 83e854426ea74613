"""The check of a model version in the registry: train, log, register, link, load."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.artifacts import download_artifacts
from mlflow.models import Model, get_model_info
from mlflow.tracking import MlflowClient

from trueup import __version__
from trueup.errors import InvalidInputError
from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.inputs import is_binary
from trueup.monitoring.learning import SCALE_PRIOR, scale_prior
from trueup.monitoring.trust.alarms import ReferenceProfile
from trueup.read.times import read_times
from trueup.user_warning import warn_user
from trueup_mlflow.monitor.batch.schema import (
    Schema,
    class_name,
    label_numbers,
    numeric_moments,
    require_columns,
    target_classes,
)
from trueup_mlflow.monitor.batch.tables import id_kind
from trueup_mlflow.monitor.check import check_flavor
from trueup_mlflow.monitor.check.predictions import GivenPredictions, LoadedModel
from trueup_mlflow.monitor.check.reference import Wishes, chosen_features
from trueup_mlflow.monitor.check.registered_model import RegisteredVersion
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


@dataclass(frozen=True)
class Check:
    """A loaded check."""

    consensus: ConsensusEstimator
    one_step: OneStepCheckModel
    schema: Schema

    def one_step_error(self, features: pd.DataFrame, prediction: Any) -> float:
        return self.one_step.mean_error(features, prediction) / self.consensus.form.unit


def train_check(
    model: LoadedModel | GivenPredictions, reference: pd.DataFrame, wishes: Wishes
) -> Check:
    """Describe a labelled reference, and fit the consensus and the paper's L on it."""
    schema = _described(model, reference, wishes)
    features = schema.features_of(reference)
    labels = label_numbers("target", reference[wishes.target], schema.classes)
    prediction = model.predict(reference, schema)
    estimator = model.estimator if wishes.reference_is == "train" else None
    consensus = ConsensusEstimator(
        estimator, reference=wishes.reference_is, metric=wishes.metric
    ).fit(features, prediction, labels)
    squared_form = consensus.form.labels(labels, prediction)
    one_step = OneStepCheckModel().fit(features, prediction, squared_form)
    means, spreads = numeric_moments(reference, schema.features)
    told = replace(
        schema,
        means=means,
        spreads=spreads,
        reference_error=consensus.reference_error,
        scale_prior=_scale_prior(consensus, reference, wishes),
        profile=ReferenceProfile.of(features, prediction).to_json(),
    )
    return Check(consensus, one_step, told)


def _described(
    model: LoadedModel | GivenPredictions, reference: pd.DataFrame, wishes: Wishes
) -> Schema:
    apart = (wishes.target, wishes.row_id, wishes.time, wishes.predicted)
    require_columns(reference, apart)
    rest = tuple(str(name) for name in reference.columns if name not in apart)
    inputs = tuple(name for name in model.inputs if name != wishes.target) or rest
    if wishes.reference_is == "train":  # the model is refitted on what the check sees
        features = inputs
    else:
        candidates = [name for name in inputs if name in reference] or rest
        features = chosen_features(
            reference, candidates, features=wishes.features, ignore=wishes.ignore
        )
    classes = target_classes(reference[wishes.target], model.classes)
    if wishes.predicted is not None and classes not in ((), ("0", "1")):
        raise InvalidInputError(
            "target must be numbers where predicted is given",
            f"the classes {list(classes)}",
            "Make it 1 for the class whose probability the column holds, 0 for the other.",
        )
    labels = label_numbers("target", reference[wishes.target], classes)
    if not classes and wishes.prediction is None and is_binary(labels):
        _say_positive(model.classes)
    return Schema(
        target=wishes.target,
        row_id=wishes.row_id,
        features=features,
        binary=is_binary(labels),
        means={},
        spreads={},
        inputs=inputs,
        prediction=wishes.prediction,
        classes=classes,
        id_kind=id_kind(reference[wishes.row_id]) if wishes.row_id else None,
        metric=wishes.metric,
    )


def _say_positive(known: Sequence[Any]) -> None:
    """Say which of a model's classes a label of 1 is taken for, where their names don't say so."""
    if len(known) > 1 and class_name(known[1]) != "1":
        warn_user(
            f"a label of 1 is taken for {known[1]!r}, the second of the model's classes "
            f"{list(known)}, as target holds 0 and 1. Where 1 is another one, write the names of "
            "the model's classes in target."
        )


def _scale_prior(
    consensus: ConsensusEstimator, reference: pd.DataFrame, wishes: Wishes
) -> tuple[float, ...]:
    if wishes.time is None:
        return SCALE_PRIOR
    times = read_times(reference[wishes.time], len(reference), time_format=wishes.time_format)
    return scale_prior(consensus.period_shifts(times))


def register_check(check: Check, version: RegisteredVersion, client: MlflowClient) -> str:
    """Log the check in a run of its own, register it and link both; return its URI."""
    with _own_run(version, client) as run_id:
        info = Model.log(
            None,
            name="check",
            flavor=check_flavor,
            metadata={"trueup_schema": check.schema.to_json()},
            check=check_flavor.CheckModel(check.consensus, check.one_step),
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
    """
    uri = check_uri(version)
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(download_artifacts(artifact_uri=uri, dst_path=folder))
        found = check_flavor.load_check_model(stored)
        schema = _schema_of(Model.load(stored).metadata)  # it lies there: no second request
    return Check(found.consensus, found.one_step, schema)


def load_schema(version: RegisteredVersion) -> Schema:
    """Return what ``init`` was told about the data of the version; no model is loaded."""
    return _schema_of(get_model_info(check_uri(version)).metadata)


def _schema_of(metadata: dict[str, Any] | None) -> Schema:
    return Schema.from_json((metadata or {})["trueup_schema"])


def check_uri(version: RegisteredVersion) -> str:
    """Return the URI of the check of a version: one that the registry knows as this version's.

    A tag of the version that points to any other model is refused.
    """
    uri = version.tags.get(CHECK_URI_TAG)
    if uri is None:
        raise InvalidInputError(
            "model_uri must be a version with a check",
            repr(version.uri),
            f"Make one with: trueup monitor init {version.uri} --reference FILE --target COLUMN.",
        )
    name = check_name(version.name)
    own = re.fullmatch(rf"models:/{re.escape(name)}/([0-9]+)", uri)
    tags = {} if own is None else MlflowClient().get_model_version(name, own[1]).tags
    if tags.get(CHECKED_URI_TAG) != version.uri:
        raise InvalidInputError(
            f"{CHECK_URI_TAG} of {version.uri} must be a version of {name!r} that was made for it",
            repr(uri),
            "Somebody has changed the tag: make the check again with trueup monitor init "
            f"{version.uri} --reference FILE --target COLUMN.",
        )
    return uri


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
