"""Learning from realized batches: by hand, without look-ahead, and on simulated streams."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from trueup.monitoring import MSEEstimate
from trueup.monitoring.learning import (
    SCALE_PRIOR,
    SCALES,
    Earlier,
    Outlook,
    PeriodShift,
    Raw,
    learn,
    period_shifts,
    scale_prior,
)
from trueup.monitoring.trust.alarms import with_trust

RAW = Raw(1.0, 0.8, 1.25, reference=1.0)


def stream(n, level_sd, seed, noise=0.1):
    """Yield a batch's raw estimate and realized error: the level is an AR(1) on the log scale."""
    rng = np.random.default_rng(seed)
    level = level_sd * rng.normal()
    for _ in range(n):
        level = 0.93 * level + np.sqrt(1 - 0.93**2) * level_sd * rng.normal()
        yield RAW, float(np.exp(level + noise * rng.normal()))


def run(batches, lag=1, prior=SCALE_PRIOR):
    """Learn batch by batch with labels that come ``lag`` batches late."""
    earlier, found = [], []
    for raw, realized in batches:
        known = len(earlier) - lag
        seen = [e if k < known else replace(e, realized=None) for k, e in enumerate(earlier)]
        learned = learn(raw, seen, prior)
        found.append(learned)
        earlier.append(Earlier(raw, realized, learned.outlook))
    return found


def test_before_labels_the_estimate_stays_and_the_interval_holds_the_drift():
    learned = learn(RAW)
    drift = np.dot(SCALE_PRIOR, SCALES**2)
    own = (np.log(1.25 / 0.8) / 2 / norm.ppf(0.95)) ** 2
    sd = np.sqrt(drift + own + 0.1**2)
    assert learned.mse == 1.0
    assert learned.high == pytest.approx(np.exp(norm.ppf(0.95) * sd))
    assert learned.low == pytest.approx(1.0 / learned.high)
    assert (learned.labels, learned.stretch) == (0, 1.0)


def test_one_label_by_hand():
    """A Kalman update for each scale: gain = P / (P + R) at a reference-like estimate."""
    learned = learn(RAW, [Earlier(RAW, realized=2.0)])
    noise = (np.log(1.25 / 0.8) / 2 / norm.ppf(0.95)) ** 2 + 0.1**2
    variance = SCALES**2 + noise
    standard = np.log(2.0) / np.sqrt(variance)
    weight = np.array(SCALE_PRIOR) / np.sqrt(variance) * (1 + standard**2 / 4) ** -2.5
    moved = np.clip(standard, -3, 3) * np.sqrt(variance) * SCALES**2 / variance
    expected = 0.93 * (weight @ moved) / weight.sum()
    assert np.log(learned.mse) == pytest.approx(expected)


def test_labels_that_come_later_change_nothing():
    batches = list(stream(30, 0.3, seed=1))
    before = run(batches)
    for first in (5, 12, 29):
        changed = [(raw, y * 9.0 if k >= first else y) for k, (raw, y) in enumerate(batches)]
        after = run(changed)
        assert after[: first + 2] == before[: first + 2]
        assert first + 2 >= len(batches) or after[first + 2] != before[first + 2]


def test_without_any_label_earlier_batches_change_nothing():
    unlabelled = [Earlier(RAW, None, Outlook(0.0, 0.5))] * 50
    assert learn(RAW, unlabelled).low == pytest.approx(learn(RAW).low)


@pytest.mark.parametrize(("move", "real"), [(4.0, 1.0), (0.25, 1.0)])
def test_an_estimate_that_moves_for_nothing_is_believed_less(move, real):
    moved = Raw(move, move * 0.8, move * 1.25, reference=1.0)
    earlier = [Earlier(raw, real) for raw in (RAW, moved) * 8]
    assert abs(np.log(learn(moved, earlier).mse)) < 0.5 * abs(np.log(move))
    assert np.log(learn(RAW, earlier).mse) == pytest.approx(0.0, abs=0.1)


def test_one_odd_batch_does_not_carry_the_estimate_away():
    earlier = [Earlier(RAW, 1.0)] * 10 + [Earlier(RAW, 1e9)] + [Earlier(RAW, 1.0)] * 2
    assert 0.7 < learn(RAW, earlier).mse < 1.4


@pytest.mark.parametrize("realized", [0.0, 1e-300, 1e300])
def test_extreme_realized_errors_stay_finite(realized):
    learned = learn(RAW, [Earlier(RAW, realized, Outlook(0.0, 0.3))] * 3)
    assert np.isfinite([learned.mse, learned.low, learned.high]).all()
    assert 0.0 < learned.low < learned.mse < learned.high


def test_an_estimate_of_zero_and_a_reference_without_error():
    zero = Raw(0.0, 0.0, 0.0, 1.0)
    assert learn(zero, [Earlier(RAW, 2.0)]).high == 0.0
    assert learn(replace(RAW, reference=0.0), [Earlier(RAW, 2.0)] * 6).mse > 1.2


@pytest.mark.parametrize("level_sd", [0.05, 0.2, 0.5])
def test_intervals_hold_what_they_promise_from_five_labels_on(level_sd):
    inside = n = 0
    for seed in range(25):
        batches = list(stream(26, level_sd, seed))
        for (_, real), learned in list(zip(batches, run(batches), strict=True))[6:]:
            inside += learned.low <= real <= learned.high
            n += 1
    assert inside / n > 0.88 - 3 * np.sqrt(0.09 / n)


def test_calm_streams_have_narrow_intervals_and_restless_ones_wide():
    widths = [
        np.median([np.log(f.high / f.low) for f in run(stream(30, sd, seed=3))[10:]])
        for sd in (0.02, 0.2, 0.8)
    ]
    assert widths[0] < widths[1] < widths[2]
    assert widths[0] < np.log(learn(RAW).high / learn(RAW).low)


def test_the_periods_of_a_reference_set_the_first_width():
    rng = np.random.default_rng(0)
    x, times = rng.normal(size=(800, 2)), np.arange(800)
    calm = rng.chisquare(1, 800)
    wild = calm * np.exp(1.5 * np.sin(times // 100 * 2.0))
    priors = [scale_prior(period_shifts(x, e, times)) for e in (calm, wild)]
    widths = [learn(RAW, (), prior).high for prior in (priors[0], SCALE_PRIOR, priors[1])]
    assert widths == sorted(widths)
    assert sum(priors[1]) == pytest.approx(1.0)
    shuffled = rng.permutation(800)
    again = period_shifts(x[shuffled], wild[shuffled], times[shuffled])
    assert scale_prior(again) == pytest.approx(priors[1], abs=0.05)
    assert period_shifts(x[:59], calm[:59], times[:59]) == ()
    assert scale_prior(()) == pytest.approx(SCALE_PRIOR)


def test_period_shifts_name_the_period_that_differs():
    x, times = np.zeros((240, 1)), np.arange(240)
    errors = np.where(times < 30, 4.0, 1.0)
    first, *others = period_shifts(x, errors, times)
    assert first == PeriodShift(pytest.approx(np.log(4.0)), pytest.approx(0.0))
    assert all(one.log_ratio < 0.0 for one in others)


def estimate(outside=0.0, *, trusted=True, reasons=()):
    diagnostics = {"outside": outside, "domain_auc": 1.0}
    return MSEEstimate(1.0, 0.8, 1.25, {}, trusted, tuple(reasons), 100, diagnostics)


def test_a_classifier_that_tells_the_times_apart_is_no_alarm():
    assert with_trust(estimate(), learn(RAW)).trusted


def test_rows_without_neighbours_and_alarms_withdraw_trust():
    outside = with_trust(estimate(0.4), learn(RAW))
    assert not outside.trusted
    assert "40% of the rows have no neighbours" in outside.reasons[0]
    alarmed = with_trust(estimate(), learn(RAW), ("column 'rain' is absurd",))
    assert (alarmed.trusted, alarmed.reasons) == (False, ("column 'rain' is absurd",))


def test_realized_batches_overrule_the_support():
    good = [Earlier(RAW, 1.0, Outlook(0.0, 0.2))] * 6
    assert with_trust(
        estimate(0.9, trusted=False, reasons=["outside of the reference: 90%"]), learn(RAW, good)
    ).trusted
    assert not with_trust(estimate(0.9), learn(RAW)).trusted
    training = estimate(trusted=False, reasons=["biased low: training errors"])
    assert not with_trust(training, learn(RAW, good)).trusted
    bad = [Earlier(RAW, y, Outlook(0.0, 0.2)) for y in (9.0, 0.1, 7.0, 0.2, 12.0, 0.1)]
    doubted = with_trust(estimate(), learn(RAW, bad))
    assert not doubted.trusted
    assert "after 6 batches with labels an estimate may be off by a factor" in doubted.reasons[0]


def test_of_few_realized_batches_it_takes_two_signs():
    narrow = learn(RAW, [Earlier(RAW, 1.0, Outlook(0.0, 0.2))])
    wide = learn(replace(RAW, low=0.1, high=10.0), [Earlier(RAW, 1.0, Outlook(0.0, 0.2))])
    assert with_trust(estimate(0.9), narrow).trusted
    assert with_trust(estimate(0.1), wide).trusted
    doubted = with_trust(estimate(0.9), wide)
    assert not doubted.trusted
    support, record = doubted.reasons
    assert "90% of the rows have no neighbours" in support
    assert "after 1 batch with labels an estimate may be off by a factor" in record  # a forecast
    assert " are off by" not in record
    assert with_trust(estimate(0.9), narrow, ("stuck",)).reasons == (support, "stuck")
    assert with_trust(estimate(0.1), wide, ("stuck",)).reasons == ("stuck",)


def test_seeded_coverage_of_first_intervals_on_mixed_streams():
    rng = np.random.default_rng(5)
    inside = []
    for seed in range(200):
        scale = rng.choice(SCALES, p=SCALE_PRIOR)
        ((_, real),) = stream(1, scale, seed)
        learned = learn(RAW)
        inside.append(learned.low <= real <= learned.high)
    assert sum(inside) >= binom.ppf(0.001, 200, 0.9)
