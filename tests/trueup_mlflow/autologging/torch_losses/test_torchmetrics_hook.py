"""Squared errors of torchmetrics, alone and in collections whose metrics share their state."""

from __future__ import annotations

import pytest
import torch

import trueup
from trueup import CrossFit
from trueup_mlflow.autologging.recent import RecentScores

torchmetrics = pytest.importorskip("torchmetrics")

from trueup_mlflow.autologging.torch_losses.torchmetrics_hook import (  # noqa: E402
    hook_torchmetrics,
)

N = 110


@pytest.fixture
def recent():
    scores = RecentScores()
    undo = hook_torchmetrics(torchmetrics, scores.record)
    yield scores
    undo()


def rows(seed):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(N, generator=generator)
    return target + 0.3 + 0.5 * torch.randn(N, generator=generator), target


def collection(**options):
    return torchmetrics.MetricCollection(
        {
            "mse": torchmetrics.MeanSquaredError(),
            "rmse": torchmetrics.MeanSquaredError(squared=False),
            "mae": torchmetrics.MeanAbsoluteError(),
        },
        **options,
    )


@pytest.mark.parametrize("compute_groups", [True, False])
@pytest.mark.parametrize("way", ["update", "forward"])
def test_each_squared_error_of_a_collection_has_its_rows(recent, compute_groups, way):
    metrics = collection(compute_groups=compute_groups)
    for epoch in range(2):
        prediction, target = rows(epoch)
        for part in zip(prediction.split(40), target.split(40), strict=True):
            metrics.update(*part) if way == "update" else metrics(*part)
        values = metrics.compute()
        metrics.reset()
        y, p = target.double().numpy(), prediction.double().numpy()
        expected = trueup.evaluate(y, p, loss="mean_squared_error")
        for key, is_root in (("mse", False), ("rmse", True)):
            match = recent.find(values[key].item())
            assert match.root == is_root
            found = match.entry.outcome(CrossFit())
            assert found.calibrated == pytest.approx(expected.calibrated, rel=1e-12)
            assert found.fingerprint == expected.fingerprint
        assert recent.find(values["mae"].item()) is None
