"""A Spark data frame as a batch gives the numbers of its rows as a pandas data frame."""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd
import pytest
from tests.spark_session import NEEDS_SPARK, local_session

from trueup.errors import InvalidInputError
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.batches import estimate_chunks, estimate_periods

URI = "models:/demand/1"

pytestmark = [
    *NEEDS_SPARK,
    # MLflow's own code warns about itself when it reads types.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    options = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    with local_session(tmp_path_factory.mktemp("spark"), options) as session:
        yield session


def rows(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "a.b": x,
            "site": rng.choice(["north", "south", None], n),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "h"),
            "y": x + 0.5 * rng.normal(size=n),
        }
    )


@pytest.fixture
def in_spark(spark, tmp_path):
    """Put rows into Spark through a file; times become instants in its time zone."""

    def read(table):
        path = str(tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet")
        table.to_parquet(path, coerce_timestamps="us")
        frame = spark.read.parquet(path)
        return (
            frame.withColumn("when", frame["when"].cast("timestamp")) if "when" in table else frame
        )

    return read


@pytest.fixture
def registered(client, tmp_path):
    class FirstFeature(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input):
            return model_input["a.b"].to_numpy()

    location = (tmp_path / "files").as_uri()
    client.create_experiment("trueup/demand", artifact_location=location)
    with mlflow.start_run():
        mlflow.pyfunc.log_model(
            name="model",
            python_model=FirstFeature(),
            registered_model_name="demand",
            pip_requirements=["pandas"],
        )


def test_a_spark_batch_has_the_numbers_of_its_rows_and_is_logged_once(in_spark, registered):
    reference, batch = rows(300, 0), rows(200, 1)
    monitor.init(URI, in_spark(reference), target="y", row_id="id")
    frame = in_spark(batch.sample(frac=1.0, random_state=0)).repartition(5)
    got = monitor.estimate(URI, frame.drop("y"), at="2026-01-31")
    assert got == monitor.estimate(URI, batch.drop(columns="y"), at="2026-02-28")
    assert got == monitor.estimate(URI, frame.repartition(3))
    (record,) = monitor.records(URI)
    assert record.n == 200
    labels = in_spark(batch[["y", "id"]]).repartition(4)
    assert monitor.realize(URI, labels).n == 1
    realized = float(((batch["y"] - batch["a.b"]) ** 2).mean())
    assert monitor.records(URI)[0].realized == pytest.approx(realized)


@pytest.mark.parametrize("period", ["week", "month"])
def test_periods_of_a_spark_frame_are_those_of_its_rows(in_spark, registered, period):
    monitor.init(URI, rows(300, 0), target="y", row_id="id")
    batch = rows(200, 1)
    frame = in_spark(batch.sample(frac=1.0, random_state=0)).repartition(5)
    got = estimate_periods(URI, frame, time_column="when", period=period)
    assert got == estimate_periods(URI, batch, time_column="when", period=period)
    assert len(monitor.records(URI)) == len(got) > 1


def test_times_of_a_spark_frame_that_are_none_are_refused(in_spark, registered):
    monitor.init(URI, rows(60, 2), target="y", row_id="id")
    batch = rows(60, 3)
    some = in_spark(batch.assign(when=batch["when"].where(batch["id"] > 9)))
    for column, message in (
        ("when", "must hold a date in every row; got none in 'when'"),
        ("a.b", "must be a date or timestamp of Spark; got double"),
        ("time", "must be a column of the batch; got 'time'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            estimate_periods(URI, some, time_column=column)


def test_spark_rows_have_no_order_to_be_cut_by(in_spark, registered):
    with pytest.raises(InvalidInputError, match="Cut it by time with estimate_periods"):
        estimate_chunks(URI, in_spark(rows(60, 3)), rows=20)


def test_spark_rows_without_a_row_id_are_refused(in_spark, registered):
    monitor.init(URI, rows(60, 2).drop(columns="id"), target="y")
    with pytest.raises(InvalidInputError, match="row_id must be a column of a Spark data frame"):
        monitor.estimate(URI, in_spark(rows(60, 3)))
