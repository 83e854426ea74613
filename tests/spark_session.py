"""A real Spark session in local mode, and the marks of the tests that use one."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager

import pytest

HAS_JAVA = bool(shutil.which("java") or os.environ.get("JAVA_HOME"))
REQUIRED = os.environ.get("TRUEUP_REQUIRE_SERVICES") == "1"

NEEDS_SPARK = [
    pytest.mark.services,
    pytest.mark.skipif(  # where services are required, a test without Java has to fail
        not HAS_JAVA and not REQUIRED, reason="Spark needs Java, which is missing"
    ),
    # Spark's own Python code warns about itself: sockets closed by the collector, pandas options.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
]


@contextmanager
def local_session(folder, options):
    """Start a session that writes under a folder, and stop it at the end."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)  # workers would take the first python3 there is
    fixed = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**fixed, **options}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    patch.undo()
