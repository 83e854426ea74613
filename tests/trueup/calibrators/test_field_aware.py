"""Field offsets and the neural calibrator: what they learn, and what they do with unseen values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, softmax

from trueup.calibrators import (
    FieldOffsetCalibrator,
    ILPSCalibrator,
    NeuralCalibrator,
    TemperatureCalibrator,
)
from trueup.calibrators.field_offset import Offsets, fit_offsets
from trueup.calibrators.line_plot import fit_shared_line_plot
from trueup.errors import InvalidInputError
from trueup.losses import LogLoss

FIELD_AWARE = [FieldOffsetCalibrator(), NeuralCalibrator(epochs=3)]


def name(calibrator):
    return type(calibrator).__name__


def biased_sites(n=8000, n_sites=20, seed=0):
    """A model that is off by N(0, 0.8^2) logits at each site."""
    rng = np.random.default_rng(seed)
    margin, site = rng.normal(-1.0, 1.0, n), rng.integers(0, n_sites, n)
    bias = rng.normal(0.0, 0.8, n_sites)
    y = (rng.random(n) < expit(margin + bias[site])).astype(int)
    return expit(margin), y, site, bias


def log_loss(y, p):
    return LogLoss().values(y.astype(np.float64), logit(p)).mean()


@pytest.mark.parametrize("calibrator", FIELD_AWARE, ids=name)
class TestFieldAware:
    def test_corrects_sites_that_a_line_plot_cannot(self, calibrator):
        p, y, site, _ = biased_sites()
        early, late = slice(0, 6000), slice(6000, None)
        calibrator.fit(p[early], y[early], fields={"site": site[early]})
        own = calibrator.predict_proba(p[late], fields={"site": site[late]})[:, 1]
        plain = ILPSCalibrator().fit(p[early], y[early]).predict_proba(p[late])[:, 1]
        assert log_loss(y[late], own) < log_loss(y[late], plain) - 0.01

    def test_order_is_kept_exactly_within_a_site(self, calibrator):
        p, y, site, _ = biased_sites(3000)
        grid = np.linspace(0.0, 1.0, 5001)
        calibrator.fit(p, y, fields={"site": site})
        calibrated = calibrator.predict_proba(grid, fields={"site": np.full(5001, 3)})[:, 1]
        assert (np.diff(calibrated) >= 0.0).all()

    def test_unseen_values_of_a_field_share_one_correction(self, calibrator):
        p, y, site, _ = biased_sites(3000)
        calibrator.fit(p, y, fields={"site": site})
        unseen = calibrator.predict_proba([0.3, 0.3], fields={"site": np.array([-1, 10**6])})
        np.testing.assert_array_equal(unseen[0], unseen[1])

    def test_text_categories_and_integers_give_the_same(self, calibrator):
        p, y, site, _ = biased_sites(3000, n_sites=9)
        text = np.array([f"s{value}" for value in site])
        expected = calibrator.fit(p, y, fields={"site": site}).predict_proba(
            p, fields={"site": site}
        )
        for column in (text, pd.Series(text), pd.Categorical(text), text.astype(object)):
            calibrator.fit(p, y, fields={"site": column})
            np.testing.assert_allclose(
                calibrator.predict_proba(p, fields={"site": column}), expected, atol=1e-6
            )

    def test_missing_values_are_a_level(self, calibrator):
        p, y, site, _ = biased_sites(6000)
        text = np.array([f"s{value}" for value in site], dtype=object)
        text[site < 10] = None
        y = np.where(site < 10, 1, y)
        calibrator.fit(p, y, fields={"site": text})
        asked = np.array([None, "new"], dtype=object)
        missing, unseen = calibrator.predict_proba([0.3, 0.3], fields={"site": asked})[:, 1]
        assert missing > unseen + 0.05

    def test_a_field_that_is_left_out_is_named(self, calibrator):
        p, y, site, _ = biased_sites(500)
        calibrator.fit(p, y, fields={"site": site})
        with pytest.raises(InvalidInputError, match="fields must hold 'site'"):
            calibrator.predict_proba(p)

    def test_a_field_of_another_length_is_named(self, calibrator):
        with pytest.raises(InvalidInputError, match=r"fields\['site'\] must have shape \(2,\)"):
            calibrator.fit([0.2, 0.3], [0, 1], fields={"site": [1]})

    def test_fields_that_are_no_mapping_are_named(self, calibrator):
        with pytest.raises(InvalidInputError, match="fields must be a mapping"):
            calibrator.fit([0.2, 0.3], [0, 1], fields=[1, 2])

    def test_a_field_that_changes_type_is_named(self, calibrator):
        p, y, site, _ = biased_sites(500)
        calibrator.fit(p, y, fields={"site": site})
        with pytest.raises(InvalidInputError, match="fields must keep their type"):
            calibrator.predict_proba(p, fields={"site": site.astype(str)})


def test_floats_are_cut_at_quantiles():
    rng = np.random.default_rng(5)
    p, depth = np.full(6000, 0.5), rng.normal(size=6000)
    y = (rng.random(6000) < expit(2.0 * depth)).astype(int)
    calibrator = FieldOffsetCalibrator().fit(p, y, fields={"depth": depth})
    low, high, missing = calibrator.predict_proba(
        [0.5] * 3, fields={"depth": np.array([-2.0, 2.0, np.nan])}
    )[:, 1]
    assert low < 0.1
    assert high > 0.9
    assert missing == pytest.approx(0.5, abs=0.05)


def test_offsets_are_the_mode_of_the_posterior():
    p, y, site, _ = biased_sites(2000, n_sites=6, seed=2)
    eta, weight, codes = logit(p), np.ones(len(p)), {"site": site + 2}
    fitted = fit_offsets(eta, y.astype(float), weight, codes, {"site": Offsets.none(8)})["site"]

    def objective(u):
        shifted = eta + u[site]
        likelihood = (np.logaddexp(0.0, shifted) - y * shifted).sum()
        return likelihood + (u**2).sum() / (2.0 * fitted.variance)

    twin = minimize(objective, np.zeros(6), tol=1e-12).x
    np.testing.assert_allclose(fitted.values[2:], twin, atol=1e-3)
    assert fitted.values[0] == 0.0


def test_offsets_vanish_where_the_model_is_right():
    rng = np.random.default_rng(6)
    margin, site = rng.normal(size=20_000), rng.integers(0, 200, 20_000)
    y = (rng.random(20_000) < expit(margin)).astype(int)
    calibrator = FieldOffsetCalibrator().fit(expit(margin), y, fields={"site": site})
    assert calibrator.spreads_["site"] < 0.05


def test_spread_of_the_offsets_is_estimated():
    p, y, site, bias = biased_sites(60_000, n_sites=300, seed=7)
    calibrator = FieldOffsetCalibrator().fit(p, y, fields={"site": site})
    # sd of an estimated sd over 300 sites is 0.8 / sqrt(600) = 0.033
    assert calibrator.spreads_["site"] == pytest.approx(bias.std(), abs=0.1)


def test_several_fields_are_corrected_together():
    rng = np.random.default_rng(8)
    margin, site, day = rng.normal(size=20_000), *rng.integers(0, 10, (2, 20_000))
    y = (rng.random(20_000) < expit(margin + 0.2 * site - 0.1 * day)).astype(int)
    fields = {"site": site, "day": day}
    calibrated = (
        FieldOffsetCalibrator()
        .fit(expit(margin), y, fields=fields)
        .predict_proba(expit(margin), fields=fields)[:, 1]
    )
    for column in (site, day):
        errors = np.bincount(column, y - calibrated) / np.bincount(column)
        assert np.abs(errors).max() < 0.01


def test_field_names_choose_what_a_calibrator_reads():
    p, y, site, _ = biased_sites(500)
    fields = {"site": site, "noise": np.arange(500)}
    calibrator = FieldOffsetCalibrator(fields="site").fit(p, y, fields=fields)
    assert list(calibrator.offsets_) == ["site"]
    calibrator.predict_proba(p, fields={"site": site})


class TestNeural:
    def test_same_seed_same_result_and_global_generator_untouched(self):
        p, y, site, _ = biased_sites(1000)
        torch.manual_seed(1)
        before = torch.get_rng_state()
        first, second = (
            NeuralCalibrator(epochs=2, random_state=4).fit(p, y, fields={"site": site})
            for _ in range(2)
        )
        assert torch.equal(torch.get_rng_state(), before)
        np.testing.assert_array_equal(
            first.predict_proba(p, fields={"site": site}),
            second.predict_proba(p, fields={"site": site}),
        )

    def test_arrays_equal_the_torch_network(self):
        from trueup.calibrators.networks.network import Training, stacked_rows
        from trueup.calibrators.networks.neural_training import AuxiliaryNetwork

        torch.manual_seed(0)
        training = Training(4, (8, 8), 1e-3, 0.0, 256, 1, 1, random_state=0)
        network = AuxiliaryNetwork([5, 7], 1, training)
        torch.nn.init.normal_(network.layers[-1].weight)
        codes = np.array([[1, 1], [4, 6], [0, 3], [0, 0]])
        rows = np.where(codes == 0, 0, codes + stacked_rows([5, 7]))
        expected = network(torch.from_numpy(rows)).detach().numpy()
        np.testing.assert_allclose(network.arrays(stacked_rows([5, 7]))(codes), expected, atol=1e-6)

    def test_pure_noise_keeps_the_line_plot(self):
        rng = np.random.default_rng(9)
        margin, site = rng.normal(size=4000), rng.integers(0, 2000, 4000)
        y = (rng.random(4000) < expit(margin)).astype(int)
        p, fields = expit(margin), {"site": site}
        neural = NeuralCalibrator().fit(p, y, fields=fields)
        calibrated = neural.predict_proba(p, fields=fields)[:, 1]
        assert np.abs(calibrated - p).mean() < 0.03

    def test_multiclass_corrects_each_site(self):
        rng = np.random.default_rng(10)
        margin, site = rng.normal(size=(9000, 3)), rng.integers(0, 5, 9000)
        truth = softmax(margin + rng.normal(0.0, 1.0, (5, 3))[site], axis=1)
        y = (rng.random((9000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
        p, fields = softmax(margin, axis=1), {"site": site}
        calibrated = NeuralCalibrator().fit(p, y, fields=fields).predict_proba(p, fields=fields)
        np.testing.assert_allclose(calibrated.sum(axis=1), 1.0)
        assert np.abs(calibrated - truth).mean() < 0.25 * np.abs(p - truth).mean()

    def test_multiclass_line_plot_bends_where_one_factor_cannot(self):
        rng = np.random.default_rng(12)
        p = softmax(2.0 * rng.normal(size=(20_000, 3)), axis=1)
        truth = softmax(np.where(np.log(p) < -2.0, -2.0, np.log(p)), axis=1)  # flat below
        y = (rng.random((20_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
        early, late = slice(0, 15_000), slice(15_000, None)
        neural = NeuralCalibrator(epochs=1).fit(p[early], y[early])
        bent = neural.predict_proba(p[late])
        one_factor = TemperatureCalibrator().fit(p[early], y[early]).predict_proba(p[late])
        distance = np.abs(bent - truth[late]).mean()
        assert distance < 0.3 * np.abs(one_factor - truth[late]).mean()

    def test_multiclass_line_plot_keeps_the_order_of_classes_up_to_its_biases(self):
        rng = np.random.default_rng(13)
        margin = rng.normal(size=(2000, 4))
        y = rng.integers(0, 4, 2000)
        fitted = NeuralCalibrator(epochs=1).fit(softmax(margin, axis=1), y).eta_
        grid = np.sort(rng.normal(-2.0, 3.0, 10_000))
        assert (np.diff(fitted.line_plot(grid)) >= 0.0).all()
        assert fitted.bias.mean() == pytest.approx(0.0, abs=1e-12)

    def test_shared_line_plot_is_the_minimum(self):
        rng = np.random.default_rng(14)
        margin = np.log(softmax(rng.normal(size=(600, 3)), axis=1))
        y, weight = rng.integers(0, 3, 600).astype(float), rng.uniform(0.5, 2.0, 600)
        fitted = fit_shared_line_plot(margin, y, weight, n_knots=6, ridge=3.0)
        knots, width = fitted.line_plot.knots, np.diff(fitted.line_plot.knots)

        def objective(theta):
            eta = np.interp(margin, knots, np.cumsum(np.r_[knots[0], theta[:5]])) + theta[5:]
            loss = logsumexp(eta, axis=1) - eta[np.arange(600), y.astype(int)]
            return weight @ loss + 3.0 * ((theta[:5] - width) ** 2 / width).sum()

        bounds = [(0.0, None)] * 5 + [(None, None)] * 3
        twin = minimize(objective, np.r_[width, np.zeros(3)], bounds=bounds, method="SLSQP")
        own = objective(np.r_[np.diff(fitted.line_plot.heights), fitted.bias])
        assert own <= twin.fun + 1e-4

    def test_wrong_fraction_is_named(self):
        with pytest.raises(InvalidInputError, match=r"validation_fraction must be in \[0, 1\)"):
            NeuralCalibrator(validation_fraction=1.0).fit([0.2, 0.3], [0, 1])


def test_a_line_plot_that_the_rows_do_not_determine_asks_for_a_ridge():
    p, weight = expit(np.array([-111.4, -5.9, -0.2])), np.array([5.6e-12, 3.6e12, 3.3e-22])
    with pytest.raises(InvalidInputError, match=r"ridge must hold the knots .* got 0\.0"):
        ILPSCalibrator(ridge=0.0).fit(p, [0, 1, 0], sample_weight=weight)
