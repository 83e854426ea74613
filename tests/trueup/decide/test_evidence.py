from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from trueup.decide.e_process import log_evidence_known_variance, log_evidence_student

SAMPLES = [[0.4], [1.2, -0.3], [0.1, 0.9, 1.4, -0.2], [-1.0, -2.0, -0.5]]


def mixture_of_known_variance(differences, tau):
    """The definition: the likelihood ratio, averaged over half-normal effects."""

    def integrand(effect):
        ratio = np.prod(stats.norm.pdf(differences, effect) / stats.norm.pdf(differences))
        return ratio * 2.0 * stats.norm.pdf(effect, scale=tau)

    return integrate.quad(integrand, 0.0, 12.0 * tau)[0]


def mixture_of_unknown_variance(differences, tau):
    """The definition: marginal likelihoods under d sigma / sigma, averaged over the effects."""
    differences = np.asarray(differences)

    def marginal(effect):
        def integrand(log_sd):
            sd = np.exp(log_sd)
            return np.prod(stats.norm.pdf(differences, effect * sd, sd))

        return integrate.quad(integrand, -12.0, 12.0, limit=400, points=[-2.0, 0.0, 2.0])[0]

    def weighted(effect):
        return marginal(effect) * 2.0 * stats.norm.pdf(effect, scale=tau)

    return integrate.quad(weighted, 0.0, 12.0, limit=200)[0] / marginal(0.0)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("tau", [0.5, 1.5])
def test_known_variance_equals_the_mixture_of_likelihood_ratios(sample, tau):
    value = log_evidence_known_variance(sum(sample), len(sample), tau)
    assert np.exp(value) == pytest.approx(mixture_of_known_variance(sample, tau), rel=1e-8)


@pytest.mark.parametrize("sample", SAMPLES)
def test_student_equals_the_ratio_of_marginal_likelihoods(sample):
    value = log_evidence_student(sum(sample), np.square(sample).sum(), len(sample))
    assert np.exp(value) == pytest.approx(mixture_of_unknown_variance(sample, 1.5), rel=1e-5)


def test_one_student_difference_says_only_its_sign():
    # By hand: with n = 1 the ratio is 2 F_1(tau sign(x)), and F_1(1.5) = 1/2 + arctan(1.5) / pi.
    worse = np.log(2.0 * (0.5 + np.arctan(1.5) / np.pi))
    assert log_evidence_student(0.3, 0.09, 1) == pytest.approx(worse, abs=1e-12)
    assert log_evidence_student(70.0, 4900.0, 1) == pytest.approx(worse, abs=1e-12)


def test_nothing_is_no_evidence():
    assert log_evidence_known_variance(0.0, 0) == 0.0
    assert log_evidence_student(0.0, 0.0, 0) == 0.0
    assert log_evidence_student(0.0, 0.0, 7) == 0.0


samples = st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3), min_size=1, max_size=20)


@given(samples, st.floats(1e-6, 1e6))
def test_student_has_no_unit(sample, unit):
    sample = np.array(sample)
    one = log_evidence_student(sample.sum(), (sample**2).sum(), len(sample))
    other = log_evidence_student((unit * sample).sum(), ((unit * sample) ** 2).sum(), len(sample))
    assert other == pytest.approx(float(one), rel=1e-6, abs=1e-9)


@given(samples, st.floats(0.0, 3.0))
def test_evidence_grows_with_each_difference(sample, shift):
    sample = np.array(sample)
    moved, n = sample + shift, len(sample)
    assert log_evidence_known_variance(moved.sum(), n) >= log_evidence_known_variance(
        sample.sum(), n
    )
    before = log_evidence_student(sample.sum(), (sample**2).sum(), n)
    assert log_evidence_student(moved.sum(), (moved**2).sum(), n) >= before - 1e-9


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_expected_e_value_of_equals_is_one(n):
    # By quadrature over the sum: E has mean 1 under mean 0, and less under a negative mean.
    def mean_e(shift):
        def integrand(total):
            log_density = stats.norm.logpdf(total, n * shift, np.sqrt(n))
            return np.exp(log_evidence_known_variance(total, n) + log_density)

        return integrate.quad(
            integrand, -40.0, 300.0, limit=500, points=[-5.0, 0.0, 5.0, 30.0, 80.0]
        )[0]

    assert mean_e(0.0) == pytest.approx(1.0, abs=1e-6)
    assert mean_e(-0.3) < 1.0
