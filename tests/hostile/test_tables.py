"""Spoilt CSV and parquet files raise the documented error: a short round of `make hostile`."""

from __future__ import annotations

import shutil

import pytest
from tests.hostile.readers import temporary_folder
from tests.hostile.tables import rows_limited, table_targets
from tests.hostile.trials import run

TRIALS = 25


@pytest.fixture
def folder():
    path = temporary_folder()
    with rows_limited():
        yield path
    shutil.rmtree(path)


def test_spoilt_tables_are_refused_or_read_and_nothing_else(folder):
    counts = [run(target, TRIALS) for target in table_targets(folder)]
    assert {one.name: one.failures for one in counts if one.failures} == {}
    assert sum(one.trials for one in counts) >= 350
    assert 0.5 < sum(one.refused for one in counts) / sum(one.trials for one in counts) < 1.0


def test_the_honest_files_are_read(folder):
    for target in table_targets(folder):
        target.read(target.honest)
