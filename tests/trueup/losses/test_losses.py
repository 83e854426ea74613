"""Values, links and corrections of the losses."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, softmax
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
)

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.losses import (
    EPS,
    LOSSES,
    BrierScore,
    GammaDeviance,
    LogLoss,
    PoissonDeviance,
    SoftmaxBrierScore,
    SoftmaxLogLoss,
    SquaredError,
    TweedieDeviance,
    get_loss,
)

RNG = np.random.default_rng(0)
LABEL = (RNG.random(400) < 0.3).astype(float)
PROBA = RNG.uniform(0.01, 0.99, 400)
WEIGHT = RNG.uniform(0.1, 2.0, 400)
TARGET = RNG.normal(size=400)
RATE = RNG.gamma(2.0, size=400)
COUNT = RNG.poisson(RATE).astype(float)
COST = RNG.gamma(1.0, RATE)
CLASS_PROBA = softmax(RNG.normal(size=(400, 4)), axis=1)
CLASS = RNG.integers(0, 4, 400).astype(float)

CASES = [
    (LogLoss(), LABEL, PROBA, log_loss),
    (BrierScore(), LABEL, PROBA, brier_score_loss),
    (SquaredError(), TARGET, PROBA, mean_squared_error),
    (PoissonDeviance(), COUNT, RATE, mean_poisson_deviance),
    (SoftmaxLogLoss(), CLASS, CLASS_PROBA, log_loss),
    (SoftmaxBrierScore(), CLASS, CLASS_PROBA, brier_score_loss),
    (GammaDeviance(), COST, RATE, mean_gamma_deviance),
    (TweedieDeviance(), COUNT, RATE, partial(mean_tweedie_deviance, power=1.5)),
    (TweedieDeviance(1.1), COUNT, RATE, partial(mean_tweedie_deviance, power=1.1)),
]
IDS = [type(case[0]).__name__ for case in CASES]


@pytest.mark.parametrize(("loss", "y_true", "y_pred", "reference"), CASES, ids=IDS)
def test_mean_value_equals_scikit_learn(loss, y_true, y_pred, reference):
    values = loss.values(y_true, loss.link(y_pred))
    assert values.mean() == pytest.approx(reference(y_true, y_pred), rel=1e-13)
    weighted = np.average(values, weights=WEIGHT)
    assert weighted == pytest.approx(reference(y_true, y_pred, sample_weight=WEIGHT), rel=1e-13)


def test_values_by_hand():
    assert LogLoss().values(np.array([1.0, 0.0]), logit(np.array([0.8, 0.8]))) == pytest.approx(
        [-np.log(0.8), -np.log(0.2)]
    )
    assert BrierScore().values(np.array([1.0]), np.array([0.0])) == pytest.approx([0.25])
    assert SquaredError().values(np.array([3.0]), np.array([1.0])) == pytest.approx([4.0])
    expected = 2.0 * (3.0 * np.log(3.0 / 2.0) - 3.0 + 2.0)
    assert PoissonDeviance().values(np.array([3.0]), np.log([2.0])) == pytest.approx([expected])
    assert PoissonDeviance().values(np.array([0.0]), np.log([2.0])) == pytest.approx([4.0])
    assert SoftmaxLogLoss().values(np.array([1.0]), np.array([[0.0, np.log(3.0)]])) == (
        pytest.approx([np.log(4.0 / 3.0)])
    )


@pytest.mark.parametrize("margin", [30.0, 40.0, 700.0])
def test_log_loss_of_a_confident_right_answer_keeps_its_digits(margin):
    right = LogLoss().values(np.array([1.0, 0.0]), np.array([margin, -margin]))
    np.testing.assert_allclose(right, np.log1p(np.exp(-margin)), rtol=1e-15)


def test_log_loss_of_zero_and_one_is_clipped_as_scikit_learn_clips():
    y_true, y_pred = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])
    ours = LogLoss().values(y_true, LogLoss().link(y_pred)).mean()
    assert ours == pytest.approx(log_loss(y_true, y_pred), rel=1e-12)
    assert ours == pytest.approx(-np.log(EPS) / 2.0, rel=1e-12)


def test_bias_terms_by_hand():
    label, proba = np.array([1.0, 0.0, 0.0, 0.0]), np.full(4, 0.5)
    for loss in (LogLoss(), BrierScore()):
        bias = loss.fit_bias(label, loss.link(proba), None)
        corrected = expit(loss.correct(loss.link(proba), bias))
        np.testing.assert_allclose(corrected, 0.25, rtol=1e-13)
    residual = SquaredError().fit_bias(np.array([1.0, 2.0]), np.array([0.0, 0.0]), None)
    assert float(residual) == 1.5
    factor = PoissonDeviance().fit_bias(np.array([2.0, 4.0]), np.log([1.0, 2.0]), None)
    assert float(factor) == pytest.approx(np.log(2.0))


def test_correction_is_subtracted_from_logits_and_added_elsewhere():
    margin, bias = np.array([1.0]), np.asarray(0.25)
    assert LogLoss().correct(margin, bias) == 0.75
    assert BrierScore().correct(margin, bias) == 0.75
    assert SquaredError().correct(margin, bias) == 1.25
    assert PoissonDeviance().correct(margin, bias) == 1.25


def test_poisson_bias_needs_a_positive_count():
    with pytest.raises(UndefinedMetricError, match=r"positive count .* got zeros only"):
        PoissonDeviance().fit_bias(np.zeros(3), np.zeros(3), None)


@pytest.mark.parametrize("loss", [GammaDeviance(), TweedieDeviance(1.3)])
def test_the_bias_of_a_deviance_minimises_it(loss):
    margin = loss.link(RATE)
    bias = loss.fit_bias(COST, margin, WEIGHT)

    def mean(shift):
        return np.average(loss.values(COST, loss.correct(margin, shift)), weights=WEIGHT)

    found = minimize_scalar(mean, bracket=(bias - 1.0, bias + 1.0), tol=1e-12)
    assert bias == pytest.approx(found.x, abs=1e-6)
    assert mean(bias) <= found.fun + 1e-13


def test_deviances_by_hand():
    assert GammaDeviance().values(np.array([3.0]), np.log([2.0])) == pytest.approx(
        [2.0 * (1.5 - 1.0 - np.log(1.5))]
    )
    assert TweedieDeviance().values(np.zeros(1), np.log([4.0])) == pytest.approx([8.0])
    factor = GammaDeviance().fit_bias(np.array([2.0, 4.0]), np.log([1.0, 1.0]), None)
    assert float(factor) == pytest.approx(np.log(3.0))


def test_powers_have_names_of_their_own_and_limits():
    assert TweedieDeviance(1.5).name == "tweedie_deviance"
    assert TweedieDeviance(1.3).name == "tweedie_deviance_1.3"
    for power in (1.0, 2.0, 0.0, "1.5"):
        with pytest.raises(InvalidInputError, match=r"power must be in \(1, 2\)"):
            TweedieDeviance(power)


def test_get_loss_knows_names_and_passes_losses_on():
    assert get_loss("brier_score") is LOSSES["brier_score"]
    own = SquaredError()
    assert get_loss(own) is own


@pytest.mark.parametrize("loss", ["mse", "", None, ["log_loss"], 3])
def test_unknown_loss_is_refused_with_the_known_names(loss):
    with pytest.raises(InvalidInputError, match=r"loss must be one of .*mean_squared_error"):
        get_loss(loss)
