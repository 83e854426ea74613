"""The rolling tables: loaders, retraining without look-ahead, splits, and a run in small."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trueup import CrossFit, Rolling, evaluate
from trueup.testing import check_split

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"
MODULES = ("data", "model", "tables", "reading", "report", "figure")


@pytest.fixture(scope="module")
def rolling():
    names = [*(f"rolling_{name}" for name in MODULES), "rolling"]
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    sys.path.remove(str(FOLDER))
    for name in names:
        del sys.modules[name]


def write_bars(folder, *, days, minutes=40, instruments=("AA", "BB")):
    rng = np.random.default_rng(0)
    stamps = [day + pd.Timedelta(minutes=570 + m) for day in days for m in range(minutes)]
    for name in instruments:
        close = 50.0 * np.exp(np.cumsum(1e-3 * rng.normal(size=len(stamps))))
        frame = pd.DataFrame({"datetime": stamps, "open": close, "high": close, "low": close})
        frame = frame.assign(close=close, volume=rng.integers(1, 99, len(stamps)))
        frame.sample(frac=1.0, random_state=0).to_csv(folder / f"{name}.csv", index=False)


def business_days(start, end):
    return list(pd.date_range(start, end, freq="7D"))


def test_minute_bars_give_returns_within_the_day(rolling, tmp_path):
    write_bars(tmp_path, days=business_days("2014-12-01", "2015-01-31"))
    series = rolling.rolling_data.minute_bars(tmp_path, first="2015-01", steps=5, ahead=10, every=7)
    assert series.x.shape[1:] == (5, 5)
    assert len(series) == 2 * 9 * 4  # minutes 4, 11, 18 and 25 of 40
    assert (np.diff(series.times) >= np.timedelta64(0)).all()

    frame = pd.read_csv(tmp_path / "AA.csv", parse_dates=["datetime"]).set_index("datetime")
    close = frame["close"].sort_index()
    stamps = np.unique(series.times)
    later = close[stamps + np.timedelta64(10, "m")].to_numpy()
    returns = later / close[stamps].to_numpy() - 1.0
    both = series.y.reshape(-1, 2)
    correlation = [np.corrcoef(column, returns)[0, 1] for column in both.T]
    assert correlation[0] == pytest.approx(1.0, abs=1e-5)
    assert abs(correlation[1]) < 0.9


def test_minute_bars_of_several_instruments_may_share_a_file(rolling, tmp_path):
    apart, together = tmp_path / "apart", tmp_path / "together"
    apart.mkdir()
    together.mkdir()
    write_bars(apart, days=business_days("2014-12-01", "2015-01-31"))
    frames = [pd.read_csv(path).assign(symbol=path.stem) for path in sorted(apart.glob("*.csv"))]
    pd.concat(frames).rename(columns={"datetime": "date"}).to_csv(together / "all.csv", index=False)
    first, second = (
        rolling.rolling_data.minute_bars(folder, first="2015-01") for folder in (apart, together)
    )
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)


def test_minute_bars_without_a_column_are_refused(rolling, tmp_path):
    pd.DataFrame({"date": ["2015-01-02"], "open": [1.0]}).to_csv(tmp_path / "A.csv", index=False)
    with pytest.raises(SystemExit, match="lacks the columns close, high, low, volume"):
        rolling.rolling_data.minute_bars(tmp_path, first="2015-01")


def test_a_folder_without_bars_is_refused(rolling, tmp_path):
    with pytest.raises(SystemExit, match="holds no CSV of minute bars"):
        rolling.rolling_data.minute_bars(tmp_path, first="2015-01")


def test_bikes_see_counts_of_the_day_before_alone(rolling, tmp_path):
    hours = pd.date_range("2011-12-28", "2012-01-04 23:00", freq="h")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dteday": hours.strftime("%Y-%m-%d"), "hr": hours.hour})
    for name in ("workingday", "weathersit", "temp", "atemp", "hum", "windspeed"):
        frame[name] = rng.random(len(hours))
    frame["cnt"] = rng.integers(0, 500, len(hours))
    path = tmp_path / "bike_sharing_hourly" / "bike_hour_17379.csv.gz"
    path.parent.mkdir()
    frame.drop(index=40).to_csv(path, index=False)
    series = rolling.rolling_data.bikes(tmp_path)
    assert series.x.shape == (len(hours) - 1 - 31, 8, 11)

    late = 150
    frame.loc[late:, "cnt"] = 7
    frame.drop(index=40).to_csv(path, index=False)
    changed = rolling.rolling_data.bikes(tmp_path)
    early = series.times < hours[late].to_datetime64() + np.timedelta64(24, "h")
    np.testing.assert_array_equal(changed.x[early], series.x[early])
    assert (changed.x[~early] != series.x[~early]).any(axis=(1, 2)).all()


def test_flight_windows_hold_earlier_days_alone(rolling):
    days = pd.date_range("2013-04-01", periods=12)
    group = pd.DataFrame(
        {"date": days, "mean": np.arange(12.0), "size": 3, "airport": 1.0, "origin": "JFK"}
    )
    windows, y, times = rolling.rolling_data._flight_windows(group, 7)
    np.testing.assert_array_equal(y, np.arange(7.0, 12.0))
    np.testing.assert_array_equal(windows[0, :, 0], np.arange(7.0))
    np.testing.assert_array_equal(times, days[7:].to_numpy())
    assert windows.shape == (5, 7, 7)


def small_series(rolling):
    rng = np.random.default_rng(0)
    days = np.arange("2011-10-01", "2012-06-01", dtype="datetime64[D]")
    times = np.repeat(days, 3)
    x = rng.normal(size=(len(times), 4, 2)).astype(np.float32)
    y = (x[:, -1, 0] + 0.1 * rng.normal(size=len(times))).astype(np.float32)
    return rolling.rolling_data.Series(x, y, times, np.datetime64("2012-01"))


@pytest.mark.parametrize("every", [1, 2, 6])
def test_each_month_is_predicted_by_a_model_of_earlier_months(rolling, every):
    series = small_series(rolling)
    trainings = list(rolling.rolling_model.trainings(series, every))
    predicted = np.concatenate([rows for _, rows in trainings])
    np.testing.assert_array_equal(predicted, np.flatnonzero(series.months >= series.first))
    for train, rows in trainings:
        assert series.months[train].max() < series.months[rows].min()
        assert len(np.unique(series.months[rows])) <= every
    seen = np.concatenate([train for train, _ in trainings])
    assert len(seen) == len(np.unique(seen))


@pytest.mark.parametrize("every", [1, 2])
def test_predictions_before_a_month_do_not_see_it(rolling, every):
    series = small_series(rolling)
    pipeline = rolling.rolling_model.Pipeline(
        hidden=4, batch_size=64, epochs=1, retrain_every=every
    )
    before = rolling.rolling_model.rolling_predictions(series, pipeline, 3)
    late = series.months >= np.datetime64("2012-04")
    x = np.where(late[:, None, None], -series.x, series.x)
    changed = replace(series, x=x, y=np.where(late, 9.0, series.y).astype(np.float32))
    after = rolling.rolling_model.rolling_predictions(changed, pipeline, 3)
    early = ~late[series.months >= series.first]
    np.testing.assert_array_equal(after[early], before[early])
    assert (after[~early] != before[~early]).all()


def test_a_seed_gives_the_same_predictions_and_another_one_others(rolling):
    series = small_series(rolling)
    pipeline = rolling.rolling_model.Pipeline(hidden=4, batch_size=64, epochs=20)
    first, again, other = (
        rolling.rolling_model.rolling_predictions(series, pipeline, seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    y = series.y[series.months >= series.first]
    assert np.mean((y - first) ** 2) < 0.5 * np.var(y)


def test_decay_ends_at_a_rate_near_zero(rolling):
    series = small_series(rolling)
    model = rolling.rolling_model
    constant, decaying = (
        model.rolling_predictions(series, model.Pipeline(hidden=4, decay=decay), 0)
        for decay in (False, True)
    )
    assert (constant != decaying).all()


def test_within_month_fits_each_fold_by_the_rest_of_its_month(rolling):
    rng = np.random.default_rng(0)
    times = np.repeat(np.arange("2012-01", "2012-04", dtype="datetime64[M]"), 100)
    times = times.astype("datetime64[D]")
    y, p = rng.normal(size=(2, 300))
    split = rolling.rolling.CrossFitWithinMonth()
    result = evaluate(y, p, loss="mean_squared_error", split=split, times=times)
    fold = CrossFit().groups(np.arange(300, dtype=np.uint64), None)
    squares = []
    for row in range(100, 300):
        others = (times == times[row]) & (fold != fold[row])
        squares.append((y[row] - p[row] - np.mean(y[others] - p[others])) ** 2)
    assert result.n_scored == 200
    assert result.calibrated == pytest.approx(np.mean(squares), rel=1e-12)
    by_rolling = evaluate(y, p, loss="mean_squared_error", split=Rolling("month"), times=times)
    assert result.vanilla_on_scored_rows == by_rolling.vanilla_on_scored_rows
    assert len(check_split(split, times=times)) == 7


def test_pairs_name_pipelines_of_their_table(rolling):
    for table in rolling.rolling_tables.TABLES.values():
        for pair in table.pairs:
            assert {pair.first, pair.second} <= set(table.pipelines)


def test_smallest_table_runs_in_small_and_goes_on_where_it_stopped(rolling, tmp_path):
    bars = tmp_path / "bars"
    bars.mkdir()
    write_bars(bars, days=business_days("2014-11-01", "2015-04-30"), minutes=45)
    raw, out = tmp_path / "raw.jsonl", tmp_path / "rolling.md"
    arguments = ["--bars", str(bars), "--seeds", "2", "--tables", "22"]
    arguments += ["--raw", str(raw), "--out", str(out)]
    rolling.rolling.main(arguments)
    text, lines = out.read_text(), raw.read_text().splitlines()
    assert len(lines) == 3 * 4
    assert text.count("| batch 128 | ") == 4
    assert "minute bars | 1 month, decaying | 22 |" in text
    assert "too few seeds" in text
    assert out.with_suffix(".png").stat().st_size > 5000

    raw.write_text("\n".join(lines[:-1]) + "\n")
    rolling.rolling.main([*arguments, "--report-only"])
    assert "minute bars | 1 month, decaying |" not in out.read_text()
    assert out.read_text().count("| batch 128 | ") == 3
    rolling.rolling.main(arguments)
    assert len(raw.read_text().splitlines()) == 3 * 4
    assert _tables(out.read_text()) == _tables(text)

    rolling.rolling.main([*arguments, "--seeds", "1", "--report-only"])
    assert "nan" not in out.read_text()
    assert " ± - |" in out.read_text()


def _tables(text):
    return [line for line in text.splitlines() if line.startswith("|")]
