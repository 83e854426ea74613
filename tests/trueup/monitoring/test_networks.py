import subprocess
import sys

import numpy as np
import pytest
import torch

from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.baselines.two_step import fit_mean, squared_error
from trueup.monitoring.networks.fitted import FittedMLP
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, as_tensor, seeded, train


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 40, 2))
    return as_tensor(x), as_tensor(np.sin(x[..., 0]))


def twin(network, index):
    """The same network as plain torch modules."""
    first, first_bias, second, second_bias = (p[index].detach().clone() for p in network.parameters)
    module = torch.nn.Sequential(
        torch.nn.Linear(*first.shape), torch.nn.ReLU(), torch.nn.Linear(*second.shape)
    )
    values = (first.T, first_bias[0], second.T, second_bias[0])
    for parameter, value in zip(module.parameters(), values, strict=True):
        parameter.data = value.contiguous()
    return module


def test_training_a_stack_equals_training_each_network_alone(data):
    x, y = data
    network = StackedMLP((2, 8, 1), 3, seeded(0))
    modules = [twin(network, index) for index in range(3)]
    plan = TrainingPlan(epochs=30)
    train([network], lambda a, b: squared_error(network(a), b), data, plan, seeded(1))
    for index, module in enumerate(modules):
        adam = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=1e-3)
        for _ in range(30):
            adam.zero_grad()
            (module(x[index])[:, 0] - y[index]).square().mean().backward()
            adam.step()
        expected = module(x[index])[:, 0].detach()
        torch.testing.assert_close(network(x)[index].detach(), expected, rtol=1e-4, atol=1e-5)


def test_initial_values_are_those_of_torch():
    network = StackedMLP((16, 4, 1), 500, seeded(0))
    for parameter, fan_in in zip(network.parameters, (16, 16, 4, 4), strict=True):
        assert parameter.abs().max() <= fan_in**-0.5
        assert parameter.std().item() == pytest.approx((1 / (3 * fan_in)) ** 0.5, rel=0.1)


def test_minibatches_see_every_row_once_an_epoch(data):
    seen = []

    def loss(rows, label):
        seen.append(label.detach())
        return squared_error(network(rows), label)

    network = StackedMLP((2, 4, 1), 3, seeded(0))
    train([network], loss, data, TrainingPlan(epochs=1, batch_size=15), seeded(1))
    assert [part.shape[1] for part in seen] == [15, 15, 10]
    together = torch.cat(seen, dim=1).sort(1).values
    torch.testing.assert_close(together, data[1].sort(1).values)


def test_early_stopping_keeps_the_best_parameters_and_stops():
    rng = np.random.default_rng(0)
    x, y = as_tensor(rng.normal(size=(1, 60, 3))), as_tensor(rng.normal(size=(1, 60)))
    calls = []

    def loss(rows, label):
        calls.append(rows.shape[1])
        return squared_error(network(rows), label)

    network = StackedMLP((3, 64, 1), 1, seeded(0))
    plan = TrainingPlan(epochs=500, validation_fraction=0.3, patience=5, learning_rate=0.05)
    train([network], loss, (x, y), plan, seeded(1))
    assert calls.count(42) < 500
    assert calls.count(18) == calls.count(42)


def test_arrays_round_trip(data):
    network = fit_mean(*data, 8, TrainingPlan(epochs=2), seeded(0))
    restored = FittedMLP.from_arrays(network.fitted().to_arrays())
    x = np.random.default_rng(1).normal(size=(3, 10, 2))
    np.testing.assert_array_equal(restored.predict(x), network.predict(x))


def test_same_rows_for_all_models_or_rows_for_each(data):
    network = fit_mean(*data, 8, TrainingPlan(epochs=2), seeded(0))
    x = np.random.default_rng(1).normal(size=(10_000, 2))
    shared = network.predict(x)
    assert shared.shape == (3, 10_000)
    np.testing.assert_allclose(shared, network.predict(np.stack([x, x, x])), atol=1e-6)


def test_a_fitted_estimator_needs_no_torch(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    fitted = ConsensusEstimator().fit(x, x[:, 0], x[:, 0] + x[:, 1])
    fitted.save(tmp_path / "check.npz")
    np.save(tmp_path / "x.npy", x)
    program = """
import sys
import numpy as np
from trueup.monitoring import ConsensusEstimator
x = np.load("x.npy")
print(repr(ConsensusEstimator.load("check.npz").estimate(x, x[:, 0]).members["disagreement"]))
assert "torch" not in sys.modules
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    here = fitted.estimate(x, x[:, 0]).members["disagreement"]
    assert ran.stdout.strip() == repr(here)
