"""Groups and parts of the splits."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

from trueup import evaluate
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.splits import CrossFit, HoldOut, InSample, Part, Rolling

IDS = np.arange(20_000, dtype=np.uint64)


def test_crossfit_scores_each_fold_with_all_others():
    parts = list(CrossFit(3).parts(3))
    assert parts == [Part(0, (1, 2)), Part(1, (0, 2)), Part(2, (0, 1))]


def test_holdout_scores_what_the_bias_was_not_fitted_on():
    assert list(HoldOut().parts(2)) == [Part(scored=1, fitted_on=(0,))]


def test_crossfit_folds_are_of_about_equal_size():
    counts = np.bincount(CrossFit(5).groups(IDS, None))
    assert np.abs(counts - 4000).max() < 4.0 * np.sqrt(20_000 * 0.2 * 0.8)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.99])
def test_holdout_keeps_its_share_of_bias_rows(fraction):
    n_bias = int((HoldOut(fraction).groups(IDS, None) == 0).sum())
    assert abs(n_bias - 20_000 * fraction) < 4.0 * np.sqrt(20_000 * fraction * (1 - fraction))


def test_folds_of_successive_ids_look_independent():
    fold = CrossFit(5).groups(IDS, None)
    same = int((fold[1:] == fold[:-1]).sum())
    assert abs(same - 4000) < 4.0 * np.sqrt(20_000 * 0.2 * 0.8)


@pytest.mark.parametrize("split", [CrossFit(5), HoldOut(0.3), InSample()])
def test_group_of_a_row_depends_on_its_id_alone(split):
    groups = split.groups(IDS, None)
    order = np.random.default_rng(0).permutation(len(IDS))[:777]
    np.testing.assert_array_equal(split.groups(IDS[order], None), groups[order])


def test_salt_gives_another_partition():
    first, second = (CrossFit(5, salt=salt).groups(IDS, None) for salt in (0, 1))
    assert abs((first == second).mean() - 0.2) < 0.02


def test_splits_of_numpy_numbers_equal_those_of_python_numbers():
    assert repr(CrossFit(np.int64(5), salt=np.int32(3))) == repr(CrossFit(5, salt=3))
    assert repr(HoldOut(np.float64(0.1))) == repr(HoldOut(0.1))
    assert repr(Rolling(np.float64(7.0))) == repr(Rolling(7)) == "Rolling(period=7)"


def test_rolling_counts_periods_from_the_earliest_time():
    times = np.array([10.0, 14.9, 15.0, 30.0, 10.0])
    np.testing.assert_array_equal(Rolling(5).groups(IDS[:5], times), [0, 0, 1, 2, 0])


def test_rolling_calibrates_each_period_with_the_one_before():
    assert list(Rolling(1).parts(3)) == [Part(1, (0,)), Part(2, (1,))]


def test_rolling_by_days_and_by_calendar_months():
    times = np.array(["2013-01-31", "2013-02-01", "2013-02-28", "2013-04-01"], "datetime64[D]")
    np.testing.assert_array_equal(Rolling("month").groups(IDS[:4], times), [0, 1, 1, 2])
    np.testing.assert_array_equal(Rolling("7d").groups(IDS[:4], times), [0, 0, 1, 2])


def test_rolling_takes_dates_and_text_and_the_instants_of_a_time_zone():
    dates = [date(2013, 1, 31), date(2013, 2, 1), date(2013, 2, 28), date(2013, 4, 1)] * 50
    zoned = pd.Series(pd.to_datetime(dates)).dt.tz_localize("America/New_York")
    late = zoned + pd.Timedelta(hours=20)  # the next day, and month, in UTC
    y, p = np.arange(200) // 4 % 2, np.linspace(0.2, 0.8, 200)
    plain, of_dates, of_text = (
        evaluate(y, p, split=Rolling("month"), times=times)
        for times in (np.array(dates, "datetime64[D]"), dates, [str(day) for day in dates])
    )
    assert plain == of_dates == of_text
    hours = [24 if day.month == 4 else 25 for day in dates]  # summer time has begun by April
    instants = np.array(dates, "datetime64[h]") + np.array(hours)
    in_utc = evaluate(y, p, split=Rolling("month"), times=instants)
    mixed = [t if i % 2 else t.tz_convert("Asia/Tokyo") for i, t in enumerate(late)]
    for times in (late, pl.Series(late.tolist()), list(late), [t.isoformat() for t in late], mixed):
        assert evaluate(y, p, split=Rolling("month"), times=times) == in_utc


def test_rolling_takes_a_duration_of_any_kind():
    days = np.repeat(np.datetime64("2013-01-01") + np.arange(28), 10)
    y, p = np.arange(280) % 2, np.linspace(0.2, 0.8, 280)
    by_week = evaluate(y, p, split=Rolling("7d"), times=days)
    assert len(by_week.fold_bias_terms) == 3
    week = timedelta(days=7)
    for period in (week, pd.Timedelta(week), np.timedelta64(7, "D"), "168h", "1 week", "1W"):
        assert Rolling(period) == Rolling("7d")
        assert evaluate(y, p, split=Rolling(period), times=days.tolist()) == by_week
    assert evaluate(y, p, split=Rolling("7d"), times=days.astype("M8[ns]")) == by_week
    numbers = (days - days[0]).astype(int)
    in_days = evaluate(y, p, split=Rolling(7), times=numbers)
    assert in_days.calibrated == by_week.calibrated


@pytest.mark.parametrize(
    ("period", "times", "message"),
    [
        (30, np.arange(60).astype("M8[D]"), r'a duration where times are datetimes; .* "30d"'),
        ("7d", np.arange(60), "times must be datetimes with period='7d'; got dtype int64"),
        ("month", np.arange(60.0), "times must be datetimes with period='month'; got dtype float"),
    ],
)
def test_rolling_refuses_a_period_without_the_unit_of_its_times(period, times, message):
    with pytest.raises(InvalidInputError, match=message):
        evaluate(np.arange(60) % 2, np.full(60, 0.5), split=Rolling(period), times=times)


def test_a_missing_time_is_named_in_a_time_zone_too():
    times = pd.Series(pd.to_datetime(["2013-01-31", None, "2013-02-01"])).dt.tz_localize("UTC")
    with pytest.raises(InvalidInputError, match="times must not be missing; got NaT at index 1"):
        evaluate([0, 1, 0], [0.2, 0.8, 0.4], split=Rolling("month"), times=times)


def drifting_rows():
    rng = np.random.default_rng(1)
    times = np.repeat(np.arange(6), 200)
    y_pred = rng.uniform(0.1, 0.9, 1200)
    return (rng.random(1200) < y_pred).astype(int), y_pred, times


def test_rolling_never_looks_ahead():
    y_true, y_pred, times = drifting_rows()
    before = evaluate(y_true, y_pred, times=times, split=Rolling(1))
    for last in range(1, 6):
        future = times >= last
        changed = evaluate(
            np.where(future, 1 - y_true, y_true),
            np.where(future, y_pred**3, y_pred),
            times=times,
            split=Rolling(1),
        )
        assert changed.fold_bias_terms[:last] == before.fold_bias_terms[:last]
        earlier = evaluate(y_true[~future], y_pred[~future], times=times[~future], split=InSample())
        assert earlier.n == 200 * last
        if last > 1:
            prefix = evaluate(
                y_true[~future], y_pred[~future], times=times[~future], split=Rolling(1)
            )
            assert prefix.fold_bias_terms == before.fold_bias_terms[: last - 1]


def test_rolling_does_not_score_the_first_period():
    y_true, y_pred, times = drifting_rows()
    result = evaluate(y_true, y_pred, times=times, split=Rolling(1))
    assert (result.n, result.n_scored) == (1200, 1000)
    later = times > 0
    rest = evaluate(y_true[later], y_pred[later], split=InSample())
    assert result.vanilla_on_scored_rows == pytest.approx(rest.vanilla, rel=1e-14)


def test_rolling_of_one_period_has_nothing_to_score():
    with pytest.raises(UndefinedMetricError, match="at least two periods of 100; got 1"):
        evaluate([0, 1], [0.5, 0.6], times=[1, 2], split=Rolling(100))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CrossFit(1), "folds must be an integer of at least 2; got 1"),
        (lambda: CrossFit(5.0), "folds must be an integer of at least 2; got 5.0"),
        (lambda: CrossFit(True), "folds must be an integer of at least 2; got True"),
        (lambda: CrossFit(salt="a"), "salt must be an integer; got 'a'"),
        (lambda: HoldOut(0.0), r"bias_fraction must be in \(0, 1\); got 0.0"),
        (lambda: HoldOut(1), r"bias_fraction must be in \(0, 1\); got 1"),
        (lambda: HoldOut(float("nan")), r"bias_fraction must be in \(0, 1\); got nan"),
        (lambda: HoldOut("0.1"), r"bias_fraction must be in \(0, 1\); got '0.1'"),
        (lambda: HoldOut(salt=0.5), "salt must be an integer; got 0.5"),
        (lambda: Rolling(0), 'period must be a positive number or "month"; got 0'),
        (lambda: Rolling(-1.5), 'period must be a positive number or "month"; got -1.5'),
        (lambda: Rolling("week"), "period must be a positive number or \"month\"; got 'week'"),
        (lambda: Rolling("7"), "period must be .*; got '7'. .* a duration such as \"7d\""),
        (lambda: Rolling("0d"), "period must be .*; got '0d'"),
        (lambda: Rolling("-7d"), "period must be .*; got '-7d'"),
        (lambda: Rolling("1.5d"), "period must be .*; got '1.5d'"),
        (lambda: Rolling(timedelta(days=-1)), "period must be .*; got datetime.timedelta"),
        (lambda: Rolling(np.timedelta64(1, "M")), "period must be .*; got .*timedelta64"),
        (lambda: Rolling(np.timedelta64("NaT")), "period must be .*; got .*NaT"),
        (lambda: Rolling(True), "period must be .*; got True"),
        (lambda: Rolling(float("inf")), "period must be .*; got inf"),
        (lambda: Rolling(None), 'period must be a positive number or "month"; got None'),
    ],
)
def test_bad_setting_of_a_split_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
