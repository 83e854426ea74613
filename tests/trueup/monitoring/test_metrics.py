"""Other metrics than the MSE: as squared errors of labels that lie their root away."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, mean_poisson_deviance
from sklearn.tree import DecisionTreeRegressor

from trueup.errors import InvalidInputError
from trueup.losses import LOSSES
from trueup.monitoring import ConsensusEstimator
from trueup.monitoring.metrics import METRICS, SquaredForm, metric_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 2))
NUMBERS = X[:, 0] + 0.5 * RNG.normal(size=500)
PROBABILITY = 1.0 / (1.0 + np.exp(-X[:, 0]))
CLASSES = (RNG.random(500) < PROBABILITY) * 1.0
COUNTS = RNG.poisson(np.exp(X[:, 0])) * 1.0
CASES = {
    "mae": (NUMBERS, X[:, 0], mean_absolute_error),
    "log_loss": (CLASSES, PROBABILITY, log_loss),
    "poisson_deviance": (COUNTS, np.exp(X[:, 0]), mean_poisson_deviance),
}


def test_every_loss_of_the_registry_is_a_metric_under_its_name_and_the_short_one():
    assert {metric_of(name).name for name in LOSSES} == set(METRICS) - {"mae"}
    assert metric_of("mean_absolute_error") is metric_of("mae")
    assert metric_of("mean_squared_error") is metric_of("mse")


@pytest.mark.parametrize("name", CASES)
def test_the_squared_error_of_the_labels_is_the_loss_in_their_unit(name):
    y, f, oracle = CASES[name]
    form = SquaredForm.fitted(name, y, f)
    squared = (form.labels(y, f) - f) ** 2
    assert squared.mean() / form.unit == pytest.approx(oracle(y, f))
    assert squared.mean() == pytest.approx(((y - f) ** 2).mean())
    assert squared / form.unit == pytest.approx(metric_of(name).of(y, f))


@pytest.mark.parametrize("name", CASES)
def test_the_estimate_is_that_of_the_metric_where_nothing_has_moved(name, tmp_path):
    y, f, oracle = CASES[name]
    check = ConsensusEstimator(metric=name).fit(X[:300], f[:300], y[:300])
    estimate = check.estimate(X[300:], f[300:])
    assert check.reference_error == pytest.approx(oracle(y[:300], f[:300]))
    assert estimate.value == pytest.approx(oracle(y[300:], f[300:]), rel=0.25)
    assert estimate.low < oracle(y[300:], f[300:]) < estimate.high
    assert estimate.value == pytest.approx(np.median(list(estimate.members.values())))
    assert estimate.to_dict()["metric"] == name
    assert "mse" not in estimate.to_dict()
    check.save(tmp_path / "check.npz")
    assert ConsensusEstimator.load(tmp_path / "check.npz").estimate(X[300:], f[300:]) == estimate


def test_an_estimate_of_the_absolute_error_has_the_unit_of_the_labels():
    one, thousand = (
        ConsensusEstimator(metric="mae").fit(X, s * X[:, 0], s * NUMBERS).estimate(X, s * X[:, 0])
        for s in (1.0, 1_000.0)
    )
    assert thousand.value == pytest.approx(1_000.0 * one.value, rel=1e-3)
    assert thousand.high / thousand.low == pytest.approx(one.high / one.low, rel=1e-3)


def test_the_brier_score_by_its_name_is_the_squared_error_of_probabilities():
    named, plain = (
        ConsensusEstimator(metric=name).fit(X, PROBABILITY, CLASSES).estimate(X, PROBABILITY)
        for name in ("brier_score", "mse")
    )
    assert (named.value, named.low, named.metric) == (plain.value, plain.low, "brier_score")


def test_training_errors_alone_are_of_the_metric_too_and_stay_distrusted():
    check = ConsensusEstimator(reference="train", metric="mae").fit(X, X[:, 0], NUMBERS)
    estimate = check.estimate(X, X[:, 0])
    assert set(estimate.members) == {"one_step_l"}
    assert estimate.value == pytest.approx(np.abs(NUMBERS - X[:, 0]).mean(), rel=0.35)
    assert not estimate.trusted


@pytest.mark.parametrize(
    ("name", "y", "f", "message"),
    [
        ("rmse", NUMBERS, NUMBERS, r"metric must be one of \['brier_score', 'gamma_.*got 'rmse'"),
        (None, NUMBERS, NUMBERS, "metric must be one of"),
        ("log_loss", NUMBERS, PROBABILITY, "must have labels of two classes.* Use mse or mae"),
        ("log_loss", CLASSES, X[:, 0], "must have probabilities as predictions; got a prediction"),
        ("poisson_deviance", NUMBERS, PROBABILITY, "must have labels of 0 or more"),
        ("tweedie_deviance", COUNTS, X[:, 0], "must have predictions above 0"),
        ("gamma_deviance", COUNTS, PROBABILITY, "must have labels above 0; got a label of 0 at"),
    ],
)
def test_what_a_metric_does_not_take_is_refused_with_the_way_out(name, y, f, message):
    with pytest.raises(InvalidInputError, match=message):
        ConsensusEstimator(metric=name).fit(X, f, y)


def test_predictions_of_a_batch_must_fit_the_metric_too():
    check = ConsensusEstimator(metric="log_loss").fit(X, PROBABILITY, CLASSES)
    with pytest.raises(InvalidInputError, match=r"probabilities as predictions; got .* at index 3"):
        check.estimate(X[:9], np.r_[PROBABILITY[:3], 1.5, PROBABILITY[4:9]])


def test_a_model_that_knows_its_rows_by_heart_is_judged_by_the_errors_of_its_clones():
    tree = DecisionTreeRegressor(random_state=0).fit(X[:300], 1_000.0 * NUMBERS[:300])
    check = ConsensusEstimator(tree, reference="train", metric="mae")
    check.fit(X[:300], tree.predict(X[:300]), 1_000.0 * NUMBERS[:300])
    estimate = check.estimate(X[300:], tree.predict(X[300:]))
    realized = mean_absolute_error(1_000.0 * NUMBERS[300:], tree.predict(X[300:]))
    assert estimate.value == pytest.approx(realized, rel=0.3)
    assert check.form.unit > 100.0  # of squared units of the labels, not of an error of 0
