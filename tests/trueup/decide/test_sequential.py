from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import nct, norm, t

from trueup.decide.e_process import confidence_radius, log_e_process, prefix_moments

DIFFERENCES = np.random.default_rng(5).normal(0.4, 1.0, 14)


def e_value_by_integration(differences):
    """Mix the likelihood ratio of the t statistic over N(0, 1) standardised effects."""
    n = len(differences)
    statistic = np.mean(differences) / (np.std(differences, ddof=1) / np.sqrt(n))

    def mixed(effect):
        return nct.pdf(statistic, n - 1, effect * np.sqrt(n)) * norm.pdf(effect)

    return quad(mixed, -8, 8, limit=200)[0] / t.pdf(statistic, n - 1)


def test_two_differences_by_hand():
    # D = 1, 3: mean 2, t = 2, v = 1: log E = -log(3)/2 + log[(1 + 4) / (1 + 4/3)]
    expected = -0.5 * np.log(3) + np.log(5 / (1 + 4 / 3))
    assert log_e_process([1.0, 3.0])[1] == pytest.approx(expected)


@pytest.mark.parametrize("n", [2, 3, 6, 14])
def test_e_value_equals_the_integral_over_the_prior(n):
    expected = np.log(e_value_by_integration(DIFFERENCES[:n]))
    assert log_e_process(DIFFERENCES)[n - 1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [5, 8, 14])
def test_interval_holds_the_means_that_the_e_process_does_not_reject(n):
    moments = prefix_moments(DIFFERENCES[:n])
    radius = confidence_radius(moments, 0.05)[-1]
    mean = moments.mean[-1]

    def excess(null):
        return log_e_process(DIFFERENCES[:n], null=null)[-1] - np.log(20)

    assert mean + radius == pytest.approx(brentq(excess, mean, mean + 100), rel=1e-9)


def test_interval_is_infinite_while_no_data_could_decide():
    radius = confidence_radius(prefix_moments(DIFFERENCES), 0.05)
    assert np.isinf(radius[:4]).all()
    assert np.isfinite(radius[4:]).all()


def test_scale_changes_nothing():
    np.testing.assert_allclose(
        log_e_process(DIFFERENCES), log_e_process(1e-6 * DIFFERENCES), rtol=1e-12
    )


def test_a_common_offset_of_data_and_hypothesis_changes_nothing():
    moved = log_e_process(DIFFERENCES + 1e6, null=1e6)
    np.testing.assert_allclose(moved, log_e_process(DIFFERENCES), atol=1e-8)


def test_order_changes_no_final_value():
    assert log_e_process(DIFFERENCES[::-1])[-1] == pytest.approx(log_e_process(DIFFERENCES)[-1])


def test_leading_axes_are_independent_sequences():
    both = np.stack([DIFFERENCES, -2 * DIFFERENCES])
    np.testing.assert_allclose(log_e_process(both)[1], log_e_process(DIFFERENCES))


def test_constant_differences_have_a_value():
    assert log_e_process(np.zeros(3)).tolist() == pytest.approx(-0.5 * np.log([2, 3, 4]))
    assert log_e_process(np.ones(5))[-1] == pytest.approx(2 * np.log(6))
