"""A real Spark session in local mode, and the marks of the tests that use one."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.warm import PYTHON

WITHOUT_JAVA = (
    not (shutil.which("java") or os.environ.get("JAVA_HOME"))
    and os.environ.get("TRUEUP_REQUIRE_SERVICES") != "1"
)

NEEDS_SPARK = [
    pytest.mark.services,
    # Spark runs in Java's machine; where services are required the tests run, and fail without it.
    pytest.mark.skipif(WITHOUT_JAVA, reason="Spark needs Java, which is missing"),
    # Spark's own Python code warns about itself: sockets closed by the collector, pandas options.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
]


def needs_spark(test):
    """Mark one test among others as NEEDS_SPARK marks those of a file."""
    for mark in NEEDS_SPARK:
        test = mark(test)
    return test


@contextmanager
def local_session(folder, options):
    """Start a session that writes under a folder, and stop it at the end."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", PYTHON)  # workers would take the first python3 there is
    fixed = {
        "spark.ui.enabled": "false",
        # Java's second compiler costs more than it saves in a minute.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "4",  # not 200, each of which is a task
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        # Where the functions of the tests are, whatever folder Java's machine was started in.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**fixed, **options}.items():
        builder = builder.config(key, value)
    interrupt = signal.getsignal(signal.SIGINT)  # Spark puts its own in place, and leaves it there
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        signal.signal(signal.SIGINT, interrupt)
        patch.undo()
