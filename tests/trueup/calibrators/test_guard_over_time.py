"""The guard on rows with times: several origins, drift, and what the decision says about them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from trueup.calibrators import (
    DRIFT_WINDOWS,
    Guarded,
    PlattCalibrator,
    ShiftCalibrator,
    load_calibrator,
)
from trueup.calibrators.judging.guard_decision import OriginChange, Rule
from trueup.errors import InvalidInputError

DAY = np.arange(16_000) // 100


def drifting(bias, n=16_000, seed=0):
    """Rows whose log-odds are off by ``bias(u)``, u the share of the time that has passed."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(-1.0, 1.0, n)
    y = (rng.random(n) < expit(margin + bias(np.arange(n) / n))).astype(int)
    return expit(margin), y


def decided(bias, **options):
    p, y = drifting(bias)
    return Guarded(ShiftCalibrator(), **options).fit(p, y, times=DAY).decision_


def test_a_stable_bias_is_kept_and_each_origin_is_shown():
    decision = decided(lambda u: 0.4 + 0.0 * u)
    assert decision.kept
    assert decision.by_time
    assert [origin.n_fit for origin in decision.origins] == list(range(8000, 16_000, 1000))
    assert all(origin.log_loss < 0.0 for origin in decision.origins)
    assert decision.origins[0].until == "79"
    assert decision.origins[-1].checked_until == "159"
    assert decision.to_markdown().count("\n") == 2 + 8
    assert "at 8 origins" in decision.reason


def test_a_bias_that_turned_is_refused_though_it_helped_on_average():
    decision = decided(lambda u: np.where(u < 0.9, 0.5, -0.3))
    assert decision.log_loss_change_high < 0.0
    assert decision.refused_by == "newest"
    assert "one of the 2 newest origins" in decision.reason
    p, y = drifting(lambda u: np.where(u < 0.9, 0.5, -0.3))
    before = Guarded(ShiftCalibrator()).fit(p, y, times=DAY // 80).decision_
    assert before.kept, "one half alone does not see it"


def test_a_change_that_differs_from_origin_to_origin_is_no_gain():
    changes = [-0.001, 0.003, 0.003, -0.02, 0.004, 0.003, -0.001, -0.001]
    origins = [OriginChange(str(i), str(i + 1), 1000, 100, v, 1e-4) for i, v in enumerate(changes)]
    decision = Rule(0.95, "field").decide(origins, 1.0)
    assert decision.log_loss_change_high < 0.0
    assert decision.refused_by == "spread"
    assert "differs from origin to origin" in decision.reason


def origin(loss, field):
    return OriginChange("", "", 1000, 1000, loss, 0.0004, field, 0.0001)


def test_the_reason_tells_gain_and_loss_together_and_the_priority_decides():
    found = [origin(-0.0075, 0.00015)]
    refused, kept = (Rule(0.95, p).decide(found, 1.0) for p in ("field", "log_loss"))
    assert (refused.kept, refused.refused_by, kept.kept) == (False, "field error", True)
    for decision in (refused, kept):
        assert "-0.0075" in decision.reason
        assert "rises by 0.00015" in decision.reason
    assert "would keep it by itself" in refused.reason
    falls = Rule(0.95, "field").decide([origin(-0.0075, -0.00015)], 1.0)
    assert "the field error falls by 0.00015" in falls.reason


def test_halves_without_times_are_said_to_be_random():
    p, y = drifting(lambda u: 0.4 + 0.0 * u)
    decision = Guarded(ShiftCalibrator()).fit(p, y).decision_
    assert not decision.by_time
    assert "a random half, since no times were given" in decision.reason


def test_coarse_times_are_said_to_allow_few_origins():
    p, y = drifting(lambda u: 0.4 + 0.0 * u)
    years = np.repeat([2015, 2016, 2017, 2018], 4000)
    decision = Guarded(ShiftCalibrator()).fit(p, y, times=years).decision_
    assert [origin.until for origin in decision.origins] == ["2016", "2017"]
    assert "at 2 origins, which is few" in decision.reason
    one = Guarded(ShiftCalibrator()).fit(p, y, times=years // 2017).decision_
    assert "nothing is known of how it changes over time" in one.reason


def test_text_dates_are_ordered_in_time_or_refused():
    p, y = drifting(lambda u: np.where(u < 0.5, 0.6, 0.0))
    days = np.datetime64("2018-12-01") + DAY
    by_date = Guarded(ShiftCalibrator()).fit(p, y, times=days).decision_
    assert Guarded(ShiftCalibrator()).fit(p, y, times=days.astype(str)).decision_ == by_date
    with pytest.raises(InvalidInputError, match="times must be numbers or datetimes, or text in"):
        Guarded(ShiftCalibrator()).fit(p, y, times=np.repeat(["Dec-2018", "Jan-2019"], 8000))


def test_the_window_follows_drift():
    p, y = drifting(lambda u: 1.2 * u)
    whole = Guarded(ShiftCalibrator()).fit(p, y, times=DAY)
    follows = Guarded(ShiftCalibrator(), windows=DRIFT_WINDOWS).fit(p, y, times=DAY)
    assert follows.decision_.window < whole.decision_.window == 1.0
    assert follows.decision_.log_loss_change < whole.decision_.log_loss_change
    newest = round(follows.decision_.window * len(p))
    refitted = ShiftCalibrator().fit(p[-newest:], y[-newest:])
    assert follows.calibrator_.bias_ == pytest.approx(refitted.bias_)


def test_no_origin_is_judged_with_a_window_that_its_own_rows_chose():
    p, y = drifting(lambda u: np.where(u < 0.95, 0.3, -0.5))
    follows = Guarded(ShiftCalibrator(), windows=DRIFT_WINDOWS).fit(p, y, times=DAY).decision_
    whole = Guarded(ShiftCalibrator()).fit(p, y, times=DAY).decision_
    assert follows.origins[-1].n_fit == whole.origins[-1].n_fit


def test_without_drift_all_rows_are_used():
    p, y = drifting(lambda u: 0.4 + 0.0 * u, seed=3)
    fitted = Guarded(PlattCalibrator(), windows=DRIFT_WINDOWS).fit(p, y, times=DAY)
    assert fitted.decision_.window == 1.0


@pytest.mark.slow
def test_without_gain_and_drift_it_is_kept_rarely():
    kept = [
        Guarded(ShiftCalibrator())
        .fit(*drifting(lambda u: 0.0 * u, n=800, seed=seed), times=np.arange(800))
        .decision_.kept
        for seed in range(400)
    ]
    assert np.mean(kept) <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("options", "times", "message"),
    [
        ({"n_origins": 3}, DAY, "n_origins must be an integer of at least 4; got 3"),
        ({"priority": "ece"}, DAY, 'priority must be "field" or "log_loss"; got \'ece\''),
        ({"windows": (2.0,)}, DAY, r"windows must be shares in \(0, 1\]"),
        ({"windows": ()}, DAY, r"windows must be shares in \(0, 1\]"),
        ({"windows": DRIFT_WINDOWS}, None, r"windows must be \(1.0,\) without times"),
        ({}, [None, *DAY[1:]], "times must"),
    ],
)
def test_wrong_options_are_named(options, times, message):
    p, y = drifting(lambda u: 0.0 * u)
    with pytest.raises(InvalidInputError, match=message):
        Guarded(ShiftCalibrator(), **options).fit(p, y, times=times)


def test_the_origins_are_stored_and_older_files_still_load(tmp_path):
    p, y = drifting(lambda u: 0.4 + 0.0 * u)
    guarded = Guarded(ShiftCalibrator(), windows=DRIFT_WINDOWS).fit(p, y, times=DAY)
    guarded.save(tmp_path / "new")
    assert load_calibrator(tmp_path / "new").decision_ == guarded.decision_

    file = tmp_path / "new/calibrator.json"
    document = json.loads(file.read_text())
    content = document["calibrator"]
    for name in ("n_origins", "windows", "priority"):
        del content["params"]["mapping"][name]
    for name in ("refused_by", "origins", "window"):
        del content["state"]["mapping"]["decision_"]["parts"]["mapping"][name]
    file.write_text(json.dumps(document))
    old = load_calibrator(tmp_path / "new")
    assert old.decision_.origins == ()
    np.testing.assert_array_equal(old.predict_proba(p), guarded.predict_proba(p))
