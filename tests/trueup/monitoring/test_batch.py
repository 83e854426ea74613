"""Parts of a large batch: the same numbers as the whole at once, whatever kind of table it is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from trueup.errors import InvalidInputError
from trueup.monitoring import ConsensusEstimator, OneStepCheckModel
from trueup.monitoring.features import Batch, FeatureEncoder


def frame(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "level": rng.choice(["a", "b"], n)})


@pytest.fixture
def parts(monkeypatch):
    """Let a part have 7 rows."""
    monkeypatch.setattr("trueup.monitoring.features.PART_ROWS", 7)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, lambda table: table[["x"]].values])
def test_each_row_is_judged_once_in_its_place(parts, kind):
    table = kind(frame(100))
    batch = Batch(FeatureEncoder().fit(table), table, np.arange(100.0))
    found = batch.rows({"place": lambda _, y_pred: y_pred, "first": lambda x, _: x[:, 0]})
    np.testing.assert_array_equal(found["place"], np.arange(100.0))
    np.testing.assert_allclose(found["first"], FeatureEncoder().fit(table).transform(table)[:, 0])


def test_a_sample_is_what_sampling_the_encoded_rows_gives():
    table = frame(50)
    encoder = FeatureEncoder().fit(table)
    batch = Batch(encoder, table, np.zeros(50))
    kept = np.random.default_rng(3).choice(50, 10, replace=False)
    np.testing.assert_array_equal(batch.sample(10, 3), encoder.transform(table)[kept])
    np.testing.assert_array_equal(batch.sample(99, 3), encoder.transform(table))


@pytest.mark.parametrize("estimator", [ConsensusEstimator(), OneStepCheckModel(epochs=20)])
def test_parts_change_no_estimate(estimator, monkeypatch):
    reference, table = frame(60, seed=1), frame(40, seed=2)
    estimator.fit(reference, reference["x"], reference["x"] ** 2)
    whole = estimator.estimate(table, table["x"])
    monkeypatch.setattr("trueup.monitoring.features.PART_ROWS", 7)
    in_parts = estimator.estimate(table, table["x"])
    for name in ("mse", "low", "high"):
        assert getattr(in_parts, name) == pytest.approx(getattr(whole, name), rel=1e-5)


def test_an_infinite_value_is_named_by_its_row_in_the_batch(parts):
    table = frame(30)
    encoder = FeatureEncoder().fit(table)
    table.loc[16, "x"] = np.inf
    with pytest.raises(InvalidInputError, match=r"finite or missing in column 'x'; .* index 16\."):
        Batch(encoder, table, np.zeros(30)).rows({"none": lambda _, y_pred: y_pred})
