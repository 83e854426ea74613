"""What MLflow would stumble over is refused before anything is logged."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest
from mlflow.exceptions import ExecutionException

from trueup.errors import InvalidInputError
from trueup_mlflow import log_evaluation, log_predictions
from trueup_mlflow.seeds.backend import SeedsConfig

Y, P = np.tile([0, 1], 30), np.full(60, 0.4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prefix", None),
        ("prefix", b"val_"),
        ("prefix", 3),
        ("dataset", 5),
        ("dataset", "validation"),
        ("dataset", {"name": "a"}),
        ("step", "3"),
        ("step", 0.5),
        ("step", 2**70),
        ("run_id", 7),
        ("model_id", ["m"]),
    ],
)
def test_a_wrong_place_is_named_and_nothing_is_logged(name, value, client):
    with mlflow.start_run() as run:
        for call in (log_evaluation, lambda y, p, **more: log_predictions(y, p, name="v", **more)):
            with pytest.raises(InvalidInputError, match=f"^{name} must be"):
                call(Y, P, **{name: value})
    data = client.get_run(run.info.run_id).data
    assert data.metrics == {}
    assert not [tag for tag in data.tags if tag.startswith("trueup")]


@pytest.mark.parametrize("config", [[], ["seeds"], "seeds", 5, None, {"seeds": 10**400}])
def test_a_backend_config_that_is_no_object_is_refused(config):
    with pytest.raises(ExecutionException, match=r"(--backend-config|seeds) must be"):
        SeedsConfig.read(config)
