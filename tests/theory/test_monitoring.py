"""What check models and the support flag promise, by seeded simulation."""

import numpy as np
import pytest
import torch

from trueup.monitoring.baselines.two_step import fit_mean
from trueup.monitoring.networks.check_network import (
    REGULARIZER_MARGIN,
    REGULARIZER_WEIGHT,
    fit_check_network,
    k_star,
)
from trueup.monitoring.networks.fitted import CheckNetwork
from trueup.monitoring.networks.training import StackedMLP, TrainingPlan, as_tensor, seeded, train
from trueup.monitoring.trust.support import SupportCheck

PLAN = TrainingPlan(learning_rate=0.01, weight_decay=1e-3, epochs=200)


def synthetic_a(trials, n, seed):
    """Equation 19 with normal noise, standardised by nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(trials, n))
    z = 3.0 * x + 5.0
    noise = 0.3 * (1.0 + np.maximum(0.0, z)) * rng.normal(size=x.shape)
    return x[..., None], z * np.sin(z) + noise


@pytest.fixture(scope="module")
def errors_on_synthetic_a():
    """Absolute estimation errors of 100 trials of the paper's first experiment."""
    x, y = synthetic_a(100, 100, seed=0)
    x_op, y_op = synthetic_a(100, 1_000, seed=1)
    center, scale = y.mean(1, keepdims=True), y.std(1, keepdims=True)
    y, y_op = (y - center) / scale, (y_op - center) / scale
    model = fit_mean(as_tensor(x), as_tensor(y), 64, PLAN, seeded(0))
    f, f_op = model.predict(x), model.predict(x_op)
    true = ((y_op - f_op) ** 2).mean(1)
    columns = as_tensor(x), as_tensor(f), as_tensor(y)
    estimates = {
        objective: fit_check_network(
            columns, seeded(1), objective=objective, head="plain", hidden=64, plan=PLAN
        )
        for objective in ("k", "k_star", "l")
    }
    estimates["as printed"] = without_positive_part(columns)
    return {
        name: np.abs(check.squared_errors(x_op, f_op).mean(1) - true)
        for name, check in estimates.items()
    }


def without_positive_part(columns):
    """K* + 100 R with R as Equation 17 is printed."""
    network = StackedMLP((1, 64, 1), 100, seeded(1))

    def loss(x, f, y):
        h = network(x)
        gap = (h - (f - REGULARIZER_MARGIN)).square()
        return k_star(h, f, y) + REGULARIZER_WEIGHT * ((f - y).square() * gap).mean(-1)

    train([network], loss, columns, PLAN, seeded(2))
    return CheckNetwork(network.fitted(), "plain")


def test_objectives_keep_the_order_of_table_1_on_synthetic_a(errors_on_synthetic_a):
    mean = {name: errors.mean() for name, errors in errors_on_synthetic_a.items()}
    assert mean["k_star"] < mean["l"] < mean["k"]
    assert 0.15 <= mean["k_star"] <= 0.25


def test_the_regularizer_as_printed_pulls_the_estimate_to_zero(errors_on_synthetic_a):
    errors = errors_on_synthetic_a["as printed"]
    gap = errors - errors_on_synthetic_a["l"]
    assert errors.mean() > 0.35
    assert gap.mean() > 3.0 * gap.std(ddof=1) / 10.0


def test_support_flag_recalls_hard_shifts_and_raises_no_false_alarms():
    trials, alarms, recalls = 60, 0, 0
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        rows = rng.normal(size=(1_000, 5))
        order = rows[:, trial % 5].argsort()
        alarms += not SupportCheck.fitted(rows[:500]).judge(rows[500:]).trusted
        recalls += not SupportCheck.fitted(rows[order[:500]]).judge(rows[order[500:]] * 3.0).trusted
    assert alarms <= 0.02 * trials
    assert recalls >= 0.95 * trials


def test_a_check_model_on_many_rows_stays_on_the_error_of_held_out_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3))
    e = 0.2 + 0.3 * (x[:, 0] > 0)
    y = e * rng.normal(size=20_000)
    columns = as_tensor(x[None]), torch.zeros(1, 20_000), as_tensor(y[None])
    plan = TrainingPlan(epochs=20, batch_size=1_000)
    check = fit_check_network(
        columns, seeded(0), objective="k", head="offset", hidden=64, plan=plan
    )
    rows = check.squared_errors(x[None], np.zeros((1, 20_000)))[0]
    assert rows.mean() == pytest.approx((e**2).mean(), rel=0.05)
    assert rows[x[:, 0] > 0.5].mean() == pytest.approx(0.25, rel=0.1)
    assert rows[x[:, 0] < -0.5].mean() == pytest.approx(0.04, rel=0.25)
