"""Small inputs that ask for much memory or time are refused, with a limit that can be raised."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from trueup import InSample, evaluate
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.levels import LIMIT_VARIABLE as LEVEL_LIMIT
from trueup.read.files import LIMIT_VARIABLE
from trueup.read.tables import read_columns
from trueup.summaries import LogLossSummary
from trueup_cli.app import app

ROWS, GROUPS = 1_000_000, 40


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """A file of a few hundred kilobytes that holds 40 million rows."""
    path = tmp_path_factory.mktemp("files") / "rows.parquet"
    part = pa.table({"y": pa.repeat(1.0, ROWS), "p": pa.repeat(0.5, ROWS)})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(GROUPS):
            writer.write_table(part)
    assert path.stat().st_size < 1_000_000
    return path


def test_a_small_file_of_many_rows_is_refused_with_the_limit(many_rows):
    with pytest.raises(InvalidInputError, match=rf"80,000,000 cells .* Set {LIMIT_VARIABLE}"):
        read_columns(many_rows, ["y", "p"])
    result = CliRunner().invoke(
        app,
        [
            "evaluate",
            str(many_rows),
            "--target",
            "y",
            "--proba",
            "p",
            "--label",
            "0",
            "--label",
            "1",
        ],
    )
    assert result.exit_code == 2
    assert LIMIT_VARIABLE in result.output


def test_the_limit_can_be_raised(many_rows, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, str(10**9))
    assert len(read_columns(many_rows, ["y"])["y"]) == ROWS * GROUPS
    monkeypatch.setenv(LIMIT_VARIABLE, "1G")
    with pytest.raises(InvalidInputError, match=f"{LIMIT_VARIABLE} must be a number of bytes"):
        read_columns(many_rows, ["y"])


@pytest.mark.parametrize("scale", [1e12, 1e100, 1e300])
def test_logits_that_are_too_far_apart_end_soon(scale):
    rng = np.random.default_rng(0)
    logit, y = rng.normal(size=(3000, 4)), rng.integers(0, 4, 3000)
    evaluate(y, y_logit=logit, split=InSample())  # imports and compiles, which takes seconds
    logit = logit * scale
    began = time.process_time()
    with pytest.raises(UndefinedMetricError, match="too far apart"):
        evaluate(y, y_logit=logit, split=InSample())
    assert time.process_time() - began < 5.0


MANY = 2_000_001
FEW = {"y_true": np.arange(400) % 2, "y_pred": np.linspace(0.1, 0.9, 400)}


def test_a_field_of_too_many_levels_is_refused_soon():
    some = np.linspace(0.1, 0.9, 30_000)  # imports and compiles, which takes seconds
    evaluate(some > 0.5, some, split=InSample(), fields={"user": np.arange(30_000)})
    p = np.linspace(0.1, 0.9, MANY)
    began = time.process_time()
    with pytest.raises(InvalidInputError, match=f"got 2,000,001.*{LEVEL_LIMIT}"):
        evaluate(p > 0.5, p, split=InSample(), fields={"user": np.arange(MANY)})
    assert time.process_time() - began < 10.0


def test_the_limit_of_levels_can_be_raised_and_lowered(monkeypatch):
    monkeypatch.setenv(LEVEL_LIMIT, "399")
    with pytest.raises(InvalidInputError, match="at most 399 levels"):
        evaluate(**FEW, fields={"user": np.arange(400)})
    monkeypatch.setenv(LEVEL_LIMIT, "400")
    assert evaluate(**FEW, fields={"user": np.arange(400)}).fields["user"].n_levels == 400


def test_a_summary_that_would_hold_too_many_levels_stays_as_it_is(monkeypatch):
    monkeypatch.setenv(LEVEL_LIMIT, "500")
    summary, other = LogLossSummary(), LogLossSummary()
    for s, first in ((summary, 0), (other, 300)):
        ids = first + np.arange(400)
        s.update(**FEW, row_id=ids, fields={"user": ids, "site": ids % 3})
    before = summary.to_bytes()
    with pytest.raises(InvalidInputError, match=r"at most 500 levels .* got 700"):
        summary.merge(other)
    assert summary.to_bytes() == before
