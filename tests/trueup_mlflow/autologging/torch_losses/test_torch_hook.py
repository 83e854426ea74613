from __future__ import annotations

import mlflow
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import trueup
from trueup_mlflow import autolog
from trueup_mlflow.write.items import is_own_key

N = 330  # not a multiple of the batch size


@pytest.fixture
def watched():
    originals = functional.cross_entropy, torch.no_grad.__enter__
    autolog()
    yield
    autolog(disable=True)
    assert (functional.cross_entropy, torch.no_grad.__enter__) == originals


def rows(columns, seed=0):
    rng = np.random.default_rng(seed)
    shape = (N, columns) if columns > 1 else (N,)
    logits = torch.tensor(rng.normal(size=shape), dtype=torch.float32)
    if columns > 1:
        return logits + 0.3 * torch.arange(columns), torch.tensor(rng.integers(0, columns, N))
    return logits + 0.4, torch.tensor(rng.integers(0, 2, N), dtype=torch.float32)


def batches(logits, target, size=50):
    return zip(logits.split(size), target.split(size), strict=True)


def by_row(criterion, logits, target):
    total = 0.0
    with torch.no_grad():
        for x, y in batches(logits, target):
            total += criterion(x, y).item() * len(y)
    return total / len(target)


def by_batch(criterion, logits, target):
    with torch.inference_mode():
        return float(np.mean([criterion(x, y).item() for x, y in batches(logits, target)]))


def by_tensor_sum(criterion, logits, target):
    total = torch.zeros(())
    with torch.no_grad():
        for x, y in batches(logits, target):
            total += criterion(x, y) * len(y)
    return (total / len(target)).item()


def train_step(logits, target):
    weight = torch.ones((), requires_grad=True)
    loss = nn.MSELoss()(weight * logits[:50], target[:50].float().expand_as(logits[:50]))
    loss.backward()


@pytest.mark.parametrize("loop", [by_row, by_batch, by_tensor_sum])
@pytest.mark.parametrize(
    ("criterion", "columns", "loss"),
    [
        (nn.BCEWithLogitsLoss(), 1, "log_loss"),
        (nn.CrossEntropyLoss(), 2, "log_loss"),
        (nn.CrossEntropyLoss(), 4, "log_loss"),
        (nn.MSELoss(), 1, "mean_squared_error"),
        (lambda x, y: nn.NLLLoss()(x.log_softmax(1), y), 3, "log_loss"),
        (lambda x, y: nn.BCELoss()(x.sigmoid(), y), 1, "log_loss"),
        (lambda x, y: functional.mse_loss(x, y, reduction="sum") / len(y), 1, "mse as a sum"),
    ],
)
def test_mean_over_a_validation_loop_gets_its_twin(client, watched, loop, criterion, columns, loss):
    logits, target = rows(columns)
    with mlflow.start_run() as run:
        mlflow.log_metric("val_loss", loop(criterion, logits, target))
    metrics = client.get_run(run.info.run_id).data.metrics
    y, x = target.numpy(), logits.double().numpy()
    if loss == "log_loss":
        expected = trueup.evaluate(y, y_logit=x[:, 1] - x[:, 0] if columns == 2 else x)
    else:
        expected = trueup.evaluate(y, x, loss="mean_squared_error")
    assert metrics["calibrated_val_loss"] == pytest.approx(expected.calibrated, rel=1e-5)


def test_each_epoch_gets_the_twin_of_its_own_loop(client, watched):
    logits, target = rows(3)
    with mlflow.start_run() as run:
        for epoch in range(3):
            train_step(logits, target[:, None])
            shifted = logits * (1.0 + epoch)
            mlflow.log_metric("loss", by_row(nn.CrossEntropyLoss(), shifted, target), step=epoch)
    history = client.get_metric_history(run.info.run_id, "calibrated_loss")
    expected = [
        trueup.evaluate(target.numpy(), y_logit=(logits * (1.0 + epoch)).double().numpy())
        for epoch in range(3)
    ]
    assert [point.value for point in history] == pytest.approx(
        [evaluation.calibrated for evaluation in expected], rel=1e-5
    )


def test_two_loops_without_training_between_are_told_apart(client, watched):
    (x_val, y_val), (x_test, y_test) = rows(3, seed=1), rows(3, seed=2)
    criterion = nn.CrossEntropyLoss()
    val, test = by_row(criterion, x_val, y_val), by_row(criterion, x_test, y_test)
    with mlflow.start_run() as run:
        mlflow.log_metrics({"val": val, "test": test})
    metrics = client.get_run(run.info.run_id).data.metrics
    for key, x, y in (("val", x_val, y_val), ("test", x_test, y_test)):
        expected = trueup.evaluate(y.numpy(), y_logit=x.double().numpy()).calibrated
        assert metrics[f"calibrated_{key}"] == pytest.approx(expected, rel=1e-5)


def test_root_of_a_squared_error_gets_a_twin(client, watched):
    x, y = rows(1)
    value = by_row(nn.MSELoss(), x, y) ** 0.5
    with mlflow.start_run() as run:
        mlflow.log_metric("rmse", value)
    metrics = client.get_run(run.info.run_id).data.metrics
    expected = trueup.evaluate(y.numpy(), x.double().numpy(), loss="mean_squared_error")
    assert metrics["calibrated_rmse"] == pytest.approx(expected.calibrated**0.5, rel=1e-5)


@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0])),
        nn.CrossEntropyLoss(label_smoothing=0.1),
    ],
)
def test_loss_that_is_not_a_plain_mean_gains_nothing(client, watched, criterion):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", by_row(criterion, *rows(3)))
    data = client.get_run(run.info.run_id).data
    assert not any(map(is_own_key, data.metrics))
    assert "the loss is computed with" in data.tags["trueup.skipped.loss"]


def test_loss_in_training_gains_nothing_and_keeps_its_gradient(client, watched):
    x, y = rows(3)
    x.requires_grad_()
    loss = nn.CrossEntropyLoss()(x, y)
    loss.backward()
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", loss.item())
    assert x.grad is not None
    assert not any(map(is_own_key, client.get_run(run.info.run_id).data.metrics))


def test_hooks_can_be_left_out(client):
    original = functional.cross_entropy
    autolog(torch=False)
    assert functional.cross_entropy is original
    autolog(disable=True)


def plain_losses(x, y, z):
    return (
        functional.cross_entropy(x, y)
        + functional.nll_loss(x, y)
        + functional.mse_loss(z, z * 0.5)
        + functional.binary_cross_entropy_with_logits(z, z.sigmoid())
        + functional.binary_cross_entropy(z.sigmoid(), z.sigmoid())
    )


class LossOfModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x, y):
        return self.criterion(x, y)


# torch advises to use torch.compile.
@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning")
def test_functions_and_modules_can_be_scripted_and_compiled_code_is_not_watched(client, watched):
    x, y = rows(3)
    z = x[:, 0]
    with torch.no_grad():
        scripted = torch.jit.script(plain_losses)(x, y, z)
        of_module = torch.jit.script(LossOfModule())(x, y)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", of_module.item())
    assert scripted.item() == pytest.approx(plain_losses(x, y, z).item(), rel=1e-6)
    assert not any(map(is_own_key, client.get_run(run.info.run_id).data.metrics))
