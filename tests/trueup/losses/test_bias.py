"""The solvers of the bias terms against brentq, and the limits they promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

from trueup import InSample, evaluate
from trueup.errors import UndefinedMetricError
from trueup.losses import solve_logit_shift, solve_softmax_shift


def brentq_shift(logit, y_true, weight=None):
    weight = np.ones(len(logit)) if weight is None else weight
    target = np.log(weight @ y_true) - np.log(weight @ (1.0 - y_true))
    return brentq(
        lambda c: weight @ (expit(logit - c) - y_true),
        logit.min() - target - 1e-9,
        logit.max() - target + 1e-9,
        xtol=1e-15,
        rtol=4 * np.finfo(float).eps,
    )


def draw(rng, n, mean, sd, shift):
    logit = rng.normal(mean, sd, n)
    y_true = (rng.random(n) < expit(logit - shift)).astype(float)
    y_true[:2] = [0.0, 1.0]
    return logit, y_true


@pytest.mark.parametrize("seed", range(200))
def test_logit_shift_equals_brentq_in_six_steps(seed):
    rng = np.random.default_rng(seed)
    logit, y_true = draw(
        rng, int(10 ** rng.uniform(1.5, 4)), rng.uniform(-4, 4), rng.uniform(0.1, 3), rng.normal()
    )
    weight = None if seed % 2 else rng.uniform(0.1, 3.0, len(logit))
    shift = solve_logit_shift(logit, y_true, weight)
    assert abs(shift.value - brentq_shift(logit, y_true, weight)) <= 1e-12
    assert shift.steps <= 6


def hard_cases():
    rng = np.random.default_rng(7)
    yield "base rate 1e-4", *draw(rng, 200_000, -10.0, 1.0, 0.0)
    yield "logits of sd 30", *draw(rng, 20_000, 0.0, 30.0, 0.0)
    yield "shift of 15", *draw(rng, 20_000, 0.0, 2.0, 15.0)
    logit, y_true = draw(rng, 20_000, 0.0, 1.0, 0.0)
    yield "logits of 700", 700.0 * np.sign(logit) * rng.random(20_000), y_true
    yield "one positive of 20,000", logit, np.eye(1, 20_000)[0]
    yield "one negative of 20,000", logit, 1.0 - np.eye(1, 20_000)[0]
    yield "equal logits", np.full(100, 3.0), y_true[:100]
    yield "two rows", np.array([-700.0, 700.0]), np.array([1.0, 0.0])


@pytest.mark.parametrize(
    ("logit", "y_true"), [pytest.param(*case[1:], id=case[0]) for case in hard_cases()]
)
def test_logit_shift_equals_brentq_in_hard_cases(logit, y_true):
    shift = solve_logit_shift(logit, y_true)
    reference = brentq_shift(logit, y_true)
    assert abs(shift.value - reference) <= 1e-12
    assert shift.steps <= 20
    if len(logit) <= 20_000:  # longer input is summed up first, to 1e-11
        in_sample = evaluate(y_true, y_logit=logit, split=InSample())
        assert abs(in_sample.bias_term - reference) <= 1e-12


@pytest.mark.parametrize("sd", [0.01, 0.1, 1.0, 10.0])
def test_evaluate_fits_the_bias_to_1e_12_however_narrow_the_logits(sd):
    rng = np.random.default_rng(3)
    for n in (100, 3_000, 20_000):
        logit, y_true = draw(rng, n, rng.normal(), sd, 0.5)
        fitted = evaluate(y_true, y_logit=logit, split=InSample()).bias_term
        assert abs(fitted - brentq_shift(logit, y_true)) <= 1e-12


@pytest.mark.parametrize(
    ("logit", "y_true"),
    [
        (np.array([0.0, 700.0]), np.array([0.0, 1.0])),
        (np.r_[np.full(50, -40.0), 0.0, np.full(50, 40.0)], np.r_[np.zeros(50), np.ones(51)]),
    ],
)
def test_equation_flat_to_rounding_gives_one_of_its_roots(logit, y_true):
    shift = solve_logit_shift(logit, y_true)
    assert abs(np.mean(expit(logit - shift.value) - y_true)) <= 1e-15
    assert shift.steps <= 60


def test_shift_of_equal_logits_is_known_by_hand():
    y_true = np.array([1.0, 0.0, 0.0, 0.0])
    assert solve_logit_shift(np.full(4, 2.0), y_true).value == pytest.approx(2.0 + np.log(3.0))


def test_integer_weights_equal_repeated_rows():
    rng = np.random.default_rng(3)
    logit, y_true = draw(rng, 500, -1.0, 1.0, 0.3)
    repeats = rng.integers(0, 4, 500)
    weighted = solve_logit_shift(logit, y_true, repeats.astype(float)).value
    repeated = solve_logit_shift(np.repeat(logit, repeats), np.repeat(y_true, repeats)).value
    assert weighted == pytest.approx(repeated, abs=1e-13)


def test_mirrored_problem_has_the_mirrored_root():
    logit, y_true = draw(np.random.default_rng(4), 300, 1.0, 1.0, 0.2)
    mirrored = solve_logit_shift(-logit, 1.0 - y_true).value
    assert solve_logit_shift(logit, y_true).value == pytest.approx(-mirrored, abs=1e-14)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_has_no_shift(label):
    with pytest.raises(UndefinedMetricError, match=r"both classes .* got a mean of"):
        solve_logit_shift(np.zeros(3), np.full(3, label))


@pytest.mark.parametrize("n_classes", [2, 3, 10, 30, 31, 60])
def test_softmax_shift_makes_class_shares_agree(n_classes):
    rng = np.random.default_rng(n_classes)
    logit = rng.normal(size=(3000, n_classes))
    y_true = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 3000 - n_classes)]
    weight = rng.uniform(0.5, 2.0, 3000)
    bias = solve_softmax_shift(logit, y_true, weight)
    observed = np.bincount(y_true, weights=weight) / weight.sum()
    predicted = weight @ softmax(logit - bias, axis=1) / weight.sum()
    np.testing.assert_allclose(predicted, observed, atol=1e-12)
    assert abs(bias.mean()) <= 1e-14


def test_softmax_shift_of_two_classes_is_the_logit_shift():
    logit, y_true = draw(np.random.default_rng(5), 2000, 1.0, 2.0, -1.0)
    bias = solve_softmax_shift(np.column_stack([np.zeros(2000), logit]), y_true.astype(int))
    assert bias[1] - bias[0] == pytest.approx(solve_logit_shift(logit, y_true).value, abs=1e-12)


def test_thirty_rare_classes_more_change_nothing():
    rng = np.random.default_rng(6)
    shares = np.r_[0.002, np.full(4, 0.998 / 4)]
    y_true = np.r_[np.arange(5), rng.choice(5, size=995, p=shares)]
    logit = rng.normal(size=(1000, 5)) * 3.0
    few = solve_softmax_shift(logit, y_true)
    padded = np.column_stack([logit, *(np.full(1000, -30.0) for _ in range(30))])
    labels = np.r_[y_true, np.arange(5, 35)]
    many = solve_softmax_shift(
        np.vstack([padded, np.full((30, 35), -30.0) + 60.0 * np.eye(35)[5:]]), labels
    )[:5]
    np.testing.assert_allclose(many - many.mean(), few - few.mean(), atol=1e-9)


def minimized_shift(logit, y_true):
    """Minimise the mean log loss, whose gradient is the gap of the shares, by a trust region."""
    share = np.bincount(y_true) / len(y_true)

    def hessian(bias):
        p = softmax(logit - bias, axis=1)
        return np.diag(p.mean(axis=0)) - p.T @ p / len(p)

    found = minimize(
        lambda b: logsumexp(logit - b, axis=1).mean() + share @ b,
        np.zeros(len(share)),
        jac=lambda b: share - softmax(logit - b, axis=1).mean(axis=0),
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-12, "maxiter": 2000},
    ).x
    return found - found.mean()


@pytest.mark.parametrize(("sd", "n_classes"), [(1.0, 40), (5.0, 4), (10.0, 40)])
@pytest.mark.parametrize("rare", [False, True])
def test_softmax_shift_equals_a_general_minimizer(sd, n_classes, rare):
    logit, y_true = confident_rows(sd, n_classes, rare)
    reference = minimized_shift(logit, y_true)
    # the minimiser stops at a gradient of 1e-12, a millionth of which a class of two rows feels
    np.testing.assert_allclose(solve_softmax_shift(logit, y_true), reference, atol=1e-6)


def confident_rows(sd, n_classes, rare, n=2000):
    rng = np.random.default_rng(n_classes)
    shares = np.r_[np.full(n_classes - 1, 0.001 / (n_classes - 1)), 0.999] if rare else None
    y_true = rng.choice(n_classes, size=n, p=shares)
    y_true[:n_classes] = np.arange(n_classes)
    return sd * rng.normal(size=(n, n_classes)), y_true


@pytest.mark.parametrize("sd", [10.0, 100.0, 300.0, 1000.0])
@pytest.mark.parametrize("n_classes", [3, 40])
@pytest.mark.parametrize("rare", [False, True])
def test_softmax_shift_converges_on_confident_logits_and_rare_classes(sd, n_classes, rare):
    logit, y_true = confident_rows(sd, n_classes, rare)
    log_proba = log_softmax(logit - solve_softmax_shift(logit, y_true), axis=1)
    predicted = logsumexp(log_proba, axis=0) - np.log(len(y_true))
    np.testing.assert_allclose(predicted, np.log(np.bincount(y_true) / len(y_true)), atol=1e-9)


def nearly_always_right(margin):
    rng = np.random.default_rng(9)
    y_true = np.r_[np.arange(10), rng.integers(0, 10, 1990)]
    logit = rng.normal(size=(2000, 10))
    said = np.where(rng.random(2000) < 0.02, (y_true + 1) % 10, y_true)
    logit[np.arange(2000), said] += margin
    return logit, y_true


def test_a_model_that_is_nearly_always_right_has_a_softmax_shift():
    logit, y_true = nearly_always_right(margin=100.0)
    predicted = softmax(logit - solve_softmax_shift(logit, y_true), axis=1).mean(axis=0)
    np.testing.assert_allclose(predicted, np.bincount(y_true) / 2000, rtol=1e-9)


def test_shares_that_do_not_meet_are_an_error():
    logit = np.tile([1e17, 0.0, 0.0], (10, 1))  # neighbouring floats are 16 apart there
    with pytest.raises(UndefinedMetricError, match=r"shares equal; got .* Scale the logits down"):
        solve_softmax_shift(logit, np.repeat([0, 1, 2], [5, 3, 2]))


def test_missing_class_is_named():
    with pytest.raises(UndefinedMetricError, match="got no row of class 1"):
        solve_softmax_shift(np.zeros((2, 3)), np.array([0, 2]))
