"""Alarms of a broken source, and their silence where only time has passed."""

import numpy as np
import pandas as pd
import pytest

from trueup.monitoring.trust.alarms import ReferenceProfile


def weather(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "temperature": rng.normal(10.0 + shift, 5.0, n),
            "rain": rng.exponential(2.0, n),
            "month": rng.integers(1, 13, n),
            "station": rng.choice(["north", "south"], n),
        }
    )


@pytest.fixture(scope="module")
def profile():
    reference = weather(500)
    return ReferenceProfile.of(reference, reference["temperature"].to_numpy() / 10.0)


def alarms(profile, batch, prediction=None):
    if prediction is None:
        prediction = batch["temperature"].to_numpy() / 10.0
    return profile.alarms(batch, prediction)


def test_another_season_is_no_alarm(profile):
    later = weather(100, seed=1, shift=4.0).assign(month=7)
    assert alarms(profile, later) == ()


def test_one_absurd_row_is_named(profile):
    batch = weather(100, seed=2)
    batch.loc[7, "rain"] = 9_831.0
    (found,) = alarms(profile, batch)
    assert found.startswith("column 'rain' is absurd in 1 row: 9831, where the reference has 0")


def test_a_value_somewhat_beyond_the_reference_is_no_alarm(profile):
    batch = weather(100, seed=2)
    known = profile.numbers["rain"]
    width = known.high - known.low
    for ranges, names in ((3.5, 0), (4.5, 1)):
        batch.loc[7, "rain"] = known.high + ranges * width
        assert len(alarms(profile, batch)) == names


def test_a_code_for_missing_is_named_where_numbers_vary(profile):
    batch, known = weather(100, seed=5), profile.numbers["rain"]
    code = known.low - 1.5 * (known.high - known.low)
    for rows, names in ((3, 0), (8, 1)):
        coded = batch.assign(rain=batch["rain"].mask(batch.index < rows, code))
        found = alarms(profile, coded)
        assert len(found) == names
    assert found[0].startswith(f"column 'rain' is {code:.6g} in 8% of the rows")
    scattered = batch["rain"].mask(batch.index < 8, code + 0.1 * batch.index)
    assert alarms(profile, batch.assign(rain=scattered)) == ()


def test_a_stuck_feature_is_named_and_a_constant_by_nature_is_not(profile):
    batch = weather(100, seed=3).assign(temperature=12.5, month=1)
    prediction = np.linspace(0.5, 1.5, 100)
    (found,) = alarms(profile, batch, prediction)
    assert found == "column 'temperature' is stuck at 12.5 in 100% of the rows, and varied before"
    assert alarms(profile, batch.head(5), prediction[:5]) == ()


def test_predictions_of_another_range_and_stuck_ones_are_named(profile):
    batch = weather(100, seed=4)
    prediction = batch["temperature"].to_numpy() / 10.0
    prediction[:30] += 3.0
    (found,) = alarms(profile, batch, prediction)
    assert "% of the predictions lie outside of those for the reference" in found
    few = np.where(np.arange(100) < 10, batch["temperature"].to_numpy() / 10.0, prediction)
    assert alarms(profile, batch, few) == ()
    (absurd,) = alarms(profile, batch, prediction + 1e3)
    assert absurd.startswith("prediction is absurd in 100 rows")
    (stuck,) = alarms(profile, batch, np.full(100, 1.0))
    assert stuck.startswith("prediction is stuck at 1 in 100%")


def test_a_profile_survives_json(profile):
    assert ReferenceProfile.from_json(profile.to_json()) == profile


def test_missing_values_and_arrays(profile):
    batch = weather(100, seed=6)
    batch["rain"] = batch["rain"].where(batch.index > 90)
    assert alarms(profile, batch) == ()
    x = np.random.default_rng(0).normal(size=(50, 2))
    of_array = ReferenceProfile.of(x, x[:, 0])
    x[3, 1] = 400.0
    assert of_array.alarms(x, x[:, 0])[0].startswith("column 'x1' is absurd in 1 row: 400")
