"""A logged number comes from the latest section that gives it; no row is in a section twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import trueup
from trueup import CrossFit
from trueup_mlflow.autologging.torch_losses import passes as passes_module

N = 330
LOSSES = {
    "binary": nn.BCEWithLogitsLoss,
    "classes": nn.CrossEntropyLoss,
    "squares": nn.MSELoss,
}


def rows(kind, seed=0, n=N):
    rng = np.random.default_rng(seed)
    if kind == "classes":
        logits = torch.tensor(rng.normal(size=(n, 4)), dtype=torch.float32)
        return TensorDataset(logits + torch.arange(4) * 0.2, torch.tensor(rng.integers(0, 4, n)))
    x = torch.tensor(rng.normal(size=n), dtype=torch.float32) + 0.3
    y = rng.integers(0, 2, n) if kind == "binary" else rng.normal(size=n)
    return TensorDataset(x, torch.tensor(y, dtype=torch.float32))


def expected(kind, data):
    x, y = (tensor.double().numpy() for tensor in data.tensors)
    if kind == "squares":
        return trueup.evaluate(y, x, loss="mean_squared_error").calibrated
    return trueup.evaluate(y.astype(int), y_logit=x).calibrated


def calibrated(passes, number):
    match = passes.find(number)
    return None if match is None else match.entry.outcome(CrossFit()).calibrated


def item_by_row(criterion, loader):
    total = sum(criterion(x, y).item() * len(y) for x, y in loader)
    return total / len(loader.dataset)


def float_by_batch(criterion, loader):
    return float(np.mean([float(criterion(x, y)) for x, y in loader]))


def running_mean(criterion, loader):
    mean, seen = 0.0, 0
    for x, y in loader:
        seen += len(y)
        mean += (criterion(x, y).item() - mean) * len(y) / seen
    return mean


def tensor_total(criterion, loader):
    total = torch.zeros(())
    for x, y in loader:
        total += criterion(x, y) * x.size(0)
    return total.item() / len(loader.dataset)


def tensor_total_divided_as_tensor(criterion, loader):
    return (sum(criterion(x, y) * len(y) for x, y in loader) / len(loader.dataset)).item()


def stacked(criterion, loader):
    return torch.stack([criterion(x, y) for x, y in loader]).mean().item()


def sums(criterion, loader):
    criterion = type(criterion)(reduction="sum")
    return sum(criterion(x, y).item() for x, y in loader) / len(loader.dataset)


def sums_as_tensor(criterion, loader):
    criterion = type(criterion)(reduction="sum")
    return float(sum(criterion(x, y) for x, y in loader)) / len(loader.dataset)


def rows_put_together(criterion, loader):
    criterion = type(criterion)(reduction="none")
    return torch.cat([criterion(x, y) for x, y in loader]).mean().item()


def means_of_rows(criterion, loader):
    criterion = type(criterion)(reduction="none")
    return sum(criterion(x, y).mean().item() for x, y in loader) / len(loader)


def all_predictions_at_once(criterion, loader):
    parts = list(loader)
    return criterion(*(torch.cat(column) for column in zip(*parts, strict=True))).item()


LOOPS = [
    item_by_row,
    float_by_batch,
    running_mean,
    tensor_total,
    tensor_total_divided_as_tensor,
    stacked,
    sums,
    sums_as_tensor,
    rows_put_together,
    means_of_rows,
    all_predictions_at_once,
]


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("loop", LOOPS)
def test_each_way_to_sum_up_a_pass_is_recognised(passes, loop, kind):
    data = rows(kind)
    with torch.no_grad():
        number = loop(LOSSES[kind](), DataLoader(data, batch_size=50))
    assert calibrated(passes, number) == pytest.approx(expected(kind, data), rel=1e-12)


def train_step():
    weight = torch.ones(3, requires_grad=True)
    functional.mse_loss(weight, torch.zeros(3)).backward()


def in_one_block(criterion, data):
    with torch.no_grad():
        return item_by_row(criterion, DataLoader(data, batch_size=50))


def a_block_for_each_batch(criterion, data):
    total = 0.0
    for x, y in zip(*(tensor.split(50) for tensor in data.tensors), strict=True):
        with torch.inference_mode():
            total += criterion(x, y).item() * len(y)
    return total / len(data)


def without_gradients_at_all(criterion, data):
    parts = zip(*(tensor.split(50) for tensor in data.tensors), strict=True)
    return sum(criterion(x, y).item() * len(y) for x, y in parts) / len(data)


SHAPES = [in_one_block, a_block_for_each_batch, without_gradients_at_all]


@pytest.mark.parametrize("shape", SHAPES)
def test_second_pass_over_the_same_rows_counts_no_row_twice(passes, shape):
    data = rows("binary")
    first = shape(nn.BCEWithLogitsLoss(), data)
    second = shape(nn.BCEWithLogitsLoss(), data)
    assert first == second
    match = passes.find(second)
    assert match.entry.outcome(CrossFit()).n == N
    assert calibrated(passes, second) == pytest.approx(expected("binary", data), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_passes_over_other_rows_are_told_apart(passes, shape):
    val, test = rows("classes", seed=1), rows("classes", seed=2, n=220)
    numbers = [shape(nn.CrossEntropyLoss(), data) for data in (val, test)]
    for number, data in zip(numbers, (val, test), strict=True):
        assert calibrated(passes, number) == pytest.approx(expected("classes", data), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_pass_of_each_epoch_is_a_section(passes, shape):
    for epoch in range(3):
        train_step()
        data = rows("squares", seed=epoch)
        number = shape(nn.MSELoss(), data)
        assert calibrated(passes, number) == pytest.approx(expected("squares", data), rel=1e-12)
        root = passes.find(number**0.5)
        assert root.root
        assert root.entry.outcome(CrossFit()).calibrated == calibrated(passes, number)


def test_equal_losses_of_all_batches_are_those_of_the_whole_pass(passes):
    data = TensorDataset(torch.zeros(N), rows("binary").tensors[1])
    number = a_block_for_each_batch(nn.BCEWithLogitsLoss(), data)
    assert passes.find(number).entry.outcome(CrossFit()).n == N


def test_two_losses_of_one_loop_are_told_apart(passes):
    data = rows("binary", seed=3)
    x, y = data.tensors
    totals = [0.0, 0.0]
    with torch.no_grad():
        for a, b in zip(x.split(50), y.split(50), strict=True):
            totals[0] += functional.binary_cross_entropy_with_logits(a, b).item() * len(b)
            totals[1] += functional.binary_cross_entropy_with_logits(a * 2, b).item() * len(b)
    for total, scale in zip(totals, (1.0, 2.0), strict=True):
        scaled = trueup.evaluate(y.int().numpy(), y_logit=scale * x.double().numpy()).calibrated
        assert calibrated(passes, total / N) == pytest.approx(scaled, rel=1e-12)


def test_number_that_no_section_gives_is_not_recognised(passes):
    number = in_one_block(nn.BCEWithLogitsLoss(), rows("binary"))
    assert passes.find(number * (1 + 1e-9)) is None
    assert passes.find(round(number, 6)) is None
    assert passes.find(0.75) is None
    assert passes.find("text") is None


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        (
            nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 1.0])),
            "computed with weight, which log_evaluation takes as sample_weight, one a row",
        ),
        (nn.CrossEntropyLoss(label_smoothing=0.1), "computed with label_smoothing"),
    ],
)
def test_loss_with_options_is_recognised_and_refused_with_the_reason(passes, loss, reason):
    outcome = passes.find(in_one_block(loss, rows("classes"))).entry.outcome(CrossFit())
    assert reason in outcome


@pytest.mark.filterwarnings("ignore:Using a target size")  # the mistake that is told
def test_shapes_that_torch_sets_against_each_other_are_said(passes):
    data = rows("squares")
    x, y = data.tensors
    number = in_one_block(nn.MSELoss(), TensorDataset(x.unsqueeze(1), y))
    outcome = passes.find(number).entry.outcome(CrossFit())
    assert "different shapes, so that torch sets each against all: give them one" in outcome


def test_memory_is_bounded_and_a_pass_that_is_too_large_is_noted(passes, monkeypatch):
    monkeypatch.setattr(passes_module, "MAX_BYTES", 20_000)
    number = in_one_block(nn.BCEWithLogitsLoss(), rows("binary", n=1000))
    assert passes._nbytes <= 20_000
    assert passes.find(number) is None
    assert passes.dropped


def test_predictions_changed_after_the_call_do_not_change_the_twin(passes):
    data = rows("squares")
    x, y = (tensor.clone() for tensor in data.tensors)
    with torch.no_grad():
        loss = nn.MSELoss()(x, y)
        number = loss.item()
        x.zero_()
        loss.mul_(3.0)
    assert calibrated(passes, number) == pytest.approx(expected("squares", data), rel=1e-12)
