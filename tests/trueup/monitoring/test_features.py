import numpy as np
import pandas as pd
import polars as pl
import pytest

from trueup.errors import InvalidInputError, NotFittedError
from trueup.monitoring.features import FeatureEncoder


def frame():
    return pd.DataFrame(
        {
            "number": [1.0, 2.0, np.nan, 4.0],
            "count": pd.array([1, None, 3, 4], dtype="Int64"),
            "city": ["a", "b", None, "a"],
            "kind": pd.Categorical(["u", "v", "u", "v"]),
            "when": pd.to_datetime(["2024-01-01", "2024-04-01", None, "2024-10-01"]),
            "flag": [True, False, True, False],
        }
    )


def test_numbers_are_standardised_like_scikit_learn():
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).normal(3, 2, size=(50, 4))
    X[:, 3] = 7.0
    encoded = FeatureEncoder().fit(X).transform(X)
    np.testing.assert_allclose(encoded, StandardScaler().fit_transform(X), atol=1e-12)


def test_a_missing_number_is_the_median_with_an_indicator():
    encoder = FeatureEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, np.nan, 6.0]}))
    raw = encoder.transform(pd.DataFrame({"x": [np.nan, 2.0]})) * encoder._scale + encoder._mean
    np.testing.assert_allclose(raw, [[2.0, 1.0], [2.0, 0.0]])


def test_every_kind_of_column_becomes_finite_numbers():
    encoded = FeatureEncoder().fit(frame()).transform(frame())
    assert np.isfinite(encoded).all()
    # number + missing, count + missing, 3 levels + other, 2 + other, 6 calendar + missing, flag
    assert encoded.shape == (4, 2 + 2 + 4 + 3 + 7 + 1)


def test_unseen_levels_fall_into_the_others_and_are_named():
    encoder = FeatureEncoder().fit(frame())
    new = frame().assign(city=["zebra", "b", "a", "a"])
    assert np.isfinite(encoder.transform(new)).all()
    assert encoder.novelties(new) == (
        "column 'city' has levels that the reference never had: ['zebra']",
    )
    assert encoder.novelties(frame()) == ()


def test_newly_missing_numbers_are_named():
    encoder = FeatureEncoder().fit(pd.DataFrame({"x": [1.0, 2.0]}))
    new = pd.DataFrame({"x": [1.0, np.nan]})
    assert encoder.novelties(new) == ("column 'x' has missing values that the reference never had",)


def test_dates_keep_their_place_in_the_year_not_the_year():
    def day(text):
        return pd.DataFrame({"when": pd.to_datetime(pd.Series([text]))})

    encoder = FeatureEncoder().fit(frame()[["when"]])
    near, far = encoder.transform(day("2025-01-01")), encoder.transform(day("2025-07-01"))
    base = encoder.transform(day("2024-01-01"))
    assert np.abs(near - base)[:, [2, 5]].max() < np.abs(far - base)[:, [2, 5]].max()


def test_rare_levels_share_one_column():
    levels = [f"c{index:02d}" for index in range(30)] * 2
    encoded = (
        FeatureEncoder()
        .fit(pd.DataFrame({"c": levels}))
        .transform(pd.DataFrame({"c": ["c00", "c29", "new"]}))
    )
    assert encoded.shape == (3, 21)
    np.testing.assert_array_equal(encoded[1], encoded[2])


def test_polars_and_pandas_agree():
    table = frame()[["number", "city", "flag"]]
    polars = pl.DataFrame(
        {
            "number": [1.0, 2.0, None, 4.0],
            "city": ["a", "b", None, "a"],
            "flag": [True, False, True, False],
        }
    )
    encoder = FeatureEncoder().fit(table)
    np.testing.assert_allclose(encoder.transform(polars), encoder.transform(table))


def test_column_order_does_not_matter_in_a_frame():
    encoder = FeatureEncoder().fit(frame())
    turned = frame()[frame().columns[::-1]]
    np.testing.assert_array_equal(encoder.transform(turned), encoder.transform(frame()))


def test_state_round_trips():
    encoder = FeatureEncoder().fit(frame())
    restored = FeatureEncoder.from_arrays(encoder.to_arrays())
    np.testing.assert_array_equal(restored.transform(frame()), encoder.transform(frame()))


def test_another_schema_is_an_error():
    encoder = FeatureEncoder().fit(frame())
    with pytest.raises(InvalidInputError, match=r"X must have the 6 columns .* without \['city'\]"):
        encoder.transform(frame().drop(columns="city"))
    with pytest.raises(InvalidInputError, match="X must hold numbers in column 'number'"):
        encoder.transform(frame().assign(number=["a", "b", "c", "d"]))
    with pytest.raises(InvalidInputError, match="X must hold dates in column 'when'"):
        encoder.transform(frame().assign(when=1.0))
    with pytest.raises(NotFittedError, match="encoder must be fitted"):
        FeatureEncoder().transform(frame())
