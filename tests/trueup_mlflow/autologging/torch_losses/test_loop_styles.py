"""Ways to train and validate that real loops have: the twin is that of the rows scored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import trueup
from trueup import CrossFit

CRITERION = nn.BCEWithLogitsLoss()


def data(seed, n=330):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    p = torch.sigmoid(x[:, 0] + 0.4)
    return TensorDataset(x, torch.bernoulli(p, generator=torch.Generator().manual_seed(seed)))


TRAIN, VALID, TEST = data(0), data(1), data(2, n=220)


class Loop:
    """A model, its training, and what it predicted in the latest validation."""

    def __init__(self, wrap=lambda model: model):
        torch.manual_seed(0)
        layer = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        self.model = wrap(layer)

    def train(self, accumulated=1, after_step=lambda step: None):
        self.model.train()
        for step, (x, y) in enumerate(DataLoader(TRAIN, batch_size=50, shuffle=True)):
            (CRITERION(self.model(x)[:, 0], y) / accumulated).backward()
            if (step + 1) % accumulated == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            after_step(step)

    def validate(self, rows=VALID):
        self.model.eval()
        total, logits = 0.0, []
        with torch.no_grad():
            for x, y in DataLoader(rows, batch_size=50):
                logits.append(self.model(x)[:, 0])
                total += CRITERION(logits[-1], y).item() * len(y)
        self.logits = torch.cat(logits).double().numpy()
        return total / len(rows)


def calibrated(passes, number):
    match = passes.find(number)
    return None if match is None else match.entry.outcome(CrossFit()).calibrated


def expected(loop, rows=VALID):
    y = rows.tensors[1].int().numpy()
    return pytest.approx(trueup.evaluate(y, y_logit=loop.logits).calibrated, rel=1e-12)


def compiled(model):
    return torch.compile(model, backend="eager")


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("wrap", [lambda model: model, compiled, nn.DataParallel])
@pytest.mark.parametrize("accumulated", [1, 4])
def test_each_epoch_of_a_usual_loop(passes, wrap, accumulated):
    loop = Loop(wrap)
    for _ in range(2):
        loop.train(accumulated)
        number = loop.validate()
        assert calibrated(passes, number) == expected(loop)


def test_validation_in_the_middle_of_an_epoch(passes):
    loop, seen = Loop(), []

    def validate(step):
        if step % 3 == 2:
            number = loop.validate()
            seen.append(calibrated(passes, number) == expected(loop))
            loop.model.train()

    loop.train(after_step=validate)
    assert seen == [True, True]


def test_losses_of_all_epochs_are_known_after_the_training(passes):
    loop, history = Loop(), []
    for _ in range(3):
        loop.train()
        history.append((loop.validate(), expected(loop)))
    loop.train()
    for number, twin in history:
        assert calibrated(passes, number) == twin


def test_several_loaders_are_told_apart(passes):
    loop = Loop()
    numbers = {}
    for rows in (VALID, TEST):
        numbers[rows] = loop.validate(rows), expected(loop, rows)
    for number, twin in numbers.values():
        assert calibrated(passes, number) == twin
    assert calibrated(passes, sum(number for number, _ in numbers.values()) / 2) is None


def test_autocast_is_scored_on_the_logits_that_the_loss_saw(passes):
    loop = Loop()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        number = loop.validate()
    assert calibrated(passes, number) == expected(loop)


def test_losses_of_rows_are_added_up_by_numpy(passes):
    loop = Loop()
    loop.validate()
    losses = nn.BCEWithLogitsLoss(reduction="none")
    with torch.no_grad():
        parts = [losses(loop.model(x)[:, 0], y).numpy() for x, y in DataLoader(VALID, 50)]
    assert calibrated(passes, float(np.concatenate(parts).mean())) == expected(loop)


@pytest.mark.parametrize("options", [{"pos_weight": torch.tensor(2.0)}, {"weight": torch.ones(50)}])
def test_weighted_losses_are_refused_with_the_reason(passes, options):
    with torch.no_grad():
        x, y = VALID[:50]
        number = functional.binary_cross_entropy_with_logits(x[:, 0], y, **options).item()
    reason = passes.find(number).entry.outcome(CrossFit())
    assert f"the loss is computed with {next(iter(options))}" in reason


def test_tensors_without_numbers_do_not_hide_the_others(passes):
    loop = Loop()
    with torch.no_grad():
        functional.mse_loss(torch.zeros(3, device="meta"), torch.zeros(3, device="meta"))
        torch.vmap(functional.mse_loss)(torch.zeros(2, 3), torch.zeros(2, 3))
    assert calibrated(passes, loop.validate()) == expected(loop)


def test_steps_that_are_logged_do_not_hide_the_validation(passes):
    loop = Loop()
    loop.train()
    number = loop.validate()
    loop.train(after_step=lambda step: passes.find(0.61234567 + 1e-3 * step))
    assert calibrated(passes, number) == expected(loop)
