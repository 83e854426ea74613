"""A Spark data frame gives the result of its collected rows, however it is partitioned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from tests.spark_session import NEEDS_SPARK, local_session

from trueup import CrossFit, HoldOut, evaluate
from trueup.errors import InvalidInputError

pytestmark = NEEDS_SPARK


@pytest.fixture(autouse=True)
def evaluate_by_rows(monkeypatch):
    """Let ``evaluate`` go over all rows: it is the yardstick here."""
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 10**9)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    options = {
        "spark.driver.memory": "2g",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    with local_session(tmp_path_factory.mktemp("spark"), options) as session:
        yield session


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    n = 20_000
    logit = rng.normal(-1.6, 3.0, n)
    return pd.DataFrame(
        {
            "click": (rng.random(n) < expit(0.7 * logit + 0.2)).astype(int),
            "p": expit(logit),
            "logit": logit,
            "id": rng.permutation(n),
            "key": [f"row {i}" for i in rng.permutation(n)],
            "weight": rng.uniform(0.1, 2.0, n),
            "site": rng.choice(["a", "b", "longer name", None], n, p=[0.6, 0.3, 0.05, 0.05]),
        }
    )


@pytest.fixture(scope="module")
def skewed(spark, rows):
    """Put 90% of the rows into one of six partitions, and leave some of the others empty."""
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(rows)
    place = F.when(F.col("id") % 10 > 0, F.lit(0)).otherwise(F.col("id") % 3)
    skewed = frame.repartition(6, place).cache()
    sizes = skewed.rdd.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
    assert max(sizes) > 0.9 * len(rows)
    assert sizes.count(0) >= 2
    return skewed


def assert_same(got, expected, tolerance=1e-11):
    assert got.fingerprint == expected.fingerprint
    assert (got.n, got.n_scored) == (expected.n, expected.n_scored)
    for name in ("vanilla", "calibrated", "vanilla_on_scored_rows", "bias_term", "bias_cost"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=tolerance)
    assert got.fold_bias_terms == pytest.approx(expected.fold_bias_terms, abs=tolerance)
    assert got.standard_errors == pytest.approx(expected.standard_errors, abs=tolerance)


@pytest.mark.parametrize("split", [CrossFit(), HoldOut(0.2, salt=3)], ids=repr)
def test_skewed_and_empty_partitions_give_the_result_of_the_rows(skewed, rows, split):
    import trueup_spark

    got = trueup_spark.evaluate(
        skewed,
        y_true="click",
        y_proba="p",
        row_id="key",
        sample_weight="weight",
        fields=["site"],
        split=split,
    )
    expected = evaluate(
        rows.click,
        rows.p,
        row_id=rows.key,
        sample_weight=rows.weight,
        fields={"site": rows.site.astype(object)},
        split=split,
    )
    assert_same(got, expected)
    assert got.fields["site"].n_levels == 4
    assert got.fields["site"].ece == pytest.approx(expected.fields["site"].ece, abs=1e-11)
    assert got.fields["site"].rce == pytest.approx(expected.fields["site"].rce, abs=1e-11)


def test_logits_and_regression(skewed, rows):
    import trueup_spark

    got = trueup_spark.evaluate(skewed, y_true="click", y_logit="logit", row_id="id")
    assert_same(got, evaluate(rows.click, y_logit=rows.logit, row_id=rows.id))
    got = trueup_spark.evaluate(
        skewed, y_true="weight", y_proba="p", row_id="id", loss="mean_squared_error"
    )
    expected = evaluate(rows.weight, rows.p, row_id=rows.id, loss="mean_squared_error")
    assert_same(got, expected)


def test_bad_arguments_are_refused_before_a_job_starts(skewed):
    import trueup_spark

    with pytest.raises(InvalidInputError, match="row_id must be given with CrossFit"):
        trueup_spark.evaluate(skewed, y_true="click", y_proba="p")
    with pytest.raises(InvalidInputError, match="column 'q' must be in the data frame; got click"):
        trueup_spark.evaluate(skewed, y_true="click", y_proba="q", row_id="id")


def test_a_bad_value_on_a_worker_is_told(spark, rows):
    from pyspark.errors import PythonException

    import trueup_spark

    bad = rows.assign(p=np.where(rows.id == 7, 1.5, rows.p))
    with pytest.raises(PythonException, match=r"y_pred must be in \[0, 1\]; got 1.5 at index"):
        trueup_spark.evaluate(spark.createDataFrame(bad), y_true="click", y_proba="p", row_id="id")


def test_two_million_rows_equal_the_closed_form(spark):
    """Rows made on the workers from their id, so that the expected sums are known in numpy."""
    from pyspark.sql import functions as F

    import trueup_spark

    n = 2_000_000
    frame = spark.range(0, n, 1, 16).select(
        "id",
        ((F.col("id") * 7919) % 1000 / 1000.0 * 0.98 + 0.01).alias("p"),
        ((F.col("id") * 104_729) % 1000 < (F.col("id") * 7919) % 1000 * 0.8 + 50)
        .cast("int")
        .alias("click"),
    )
    got = trueup_spark.evaluate(frame, y_true="click", y_proba="p", row_id="id")
    ids = np.arange(n)
    p = (ids * 7919) % 1000 / 1000.0 * 0.98 + 0.01
    click = (ids * 104_729) % 1000 < (ids * 7919) % 1000 * 0.8 + 50
    assert_same(got, evaluate(click, p, row_id=ids))
