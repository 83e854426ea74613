from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup import InSample, evaluate_files
from trueup.errors import InvalidInputError
from trueup.read.tables import read_columns, read_frame
from trueup.read.times import read_times


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "y": [0, 1, 1],
            "p": np.array([0.1, 0.9, 0.3], np.float32),
            "site": pd.Categorical(["a", None, "b"]),
            "t": pd.date_range("2013-01-01", periods=3),
        }
    )


def test_parquet_keeps_types(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    columns = read_columns([str(tmp_path / "a.parquet")], ["y", "p", "site", "t", "y"])
    assert list(columns) == ["y", "p", "site", "t"]
    assert columns["p"].dtype == np.float32
    assert columns["site"].tolist() == ["a", None, "b"]
    assert read_times(columns["t"]).dtype.kind == "M"


def test_csv_and_compressed_csv_are_read(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    columns = read_columns([str(tmp_path / "a.csv"), str(tmp_path / "b.csv.gz")], ["y", "t"])
    assert columns["y"].tolist() == [0, 1, 1, 0, 1, 1]
    assert read_times(columns["t"]).dtype.kind == "M"


def test_patterns_are_sorted_and_joined_in_order(tmp_path):
    for name, value in (("b", 2), ("a", 1), ("c", 3)):
        pd.DataFrame({"y": [value]}).to_parquet(tmp_path / f"{name}.parquet")
    columns = read_columns([str(tmp_path / "c.parquet"), str(tmp_path / "[ab].parquet")], ["y"])
    assert columns["y"].tolist() == [3, 1, 2]


def test_a_file_whose_name_looks_like_a_pattern_is_taken_as_it_is(frame, tmp_path):
    frame.to_parquet(tmp_path / "[a].parquet")
    assert len(read_columns([str(tmp_path / "[a].parquet")], ["y"])["y"]) == 3


def test_bad_files_are_refused_with_the_message(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "broken.parquet").write_text("x")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.txt").write_text("y\n1\n")
    pd.DataFrame({"y": ["text"]}).to_parquet(tmp_path / "b.parquet")
    for files, message in (
        (["nowhere*.parquet"], "paths must name files; got .*nowhere"),
        (["broken.parquet"], "broken.parquet must be a readable file; got"),
        (["empty.csv"], "empty.csv must be a readable file; got"),
        (["a.txt"], "paths must end in one of .parquet"),
        (["a.parquet", "b.parquet"], "files must agree about the types of their columns"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            read_columns([str(tmp_path / file) for file in files], ["y"])
    with pytest.raises(InvalidInputError, match=r"column 'q' must be in .*; got y, p, site, t"):
        read_columns([str(tmp_path / "a.parquet")], ["q"])


LATE = np.array(["12000-01-01", "2020-01-01"], dtype="datetime64[us]")
UNREADABLE = {
    "bytes that are no UTF-8": pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(np.arange(3, dtype=np.int32)), pa.py_buffer(b"\xff\xfe")],
    ),
    "a year after 9999": pa.array(LATE),
    "a year of days after 9999": pa.array([10**7, 0], pa.date32()),
    "an unknown time zone": pa.array([0, 1], pa.timestamp("us", "Mars/Base")),
    "a duration of ages": pa.array([2**62, 0], pa.duration("s")),
    "nanoseconds of a day": pa.array([1, 2], pa.time64("ns")),
}


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("bytes that are no UTF-8", "batches columns frame"),
        ("a year after 9999", "batches"),
        ("a year of days after 9999", "batches frame"),
        ("an unknown time zone", "batches frame"),
        ("a duration of ages", "batches"),
        ("nanoseconds of a day", "columns frame"),
    ],
)
def test_what_python_has_no_form_of_is_refused_by_name(tmp_path, kind, refused):
    file = tmp_path / "a.parquet"
    columns = {"p": [0.2, 0.7], "y": [0, 1], "site": UNREADABLE[kind]}
    pq.write_table(pa.table(columns), file)
    names = {"y_true": "y", "y_proba": "p", "fields": ["site"], "split": InSample()}
    reads = {
        "batches": lambda: evaluate_files(file, **names),
        "columns": lambda: str(read_columns(file, ["site"])),
        "frame": lambda: str(read_frame(file)),
    }
    for name in refused.split():
        with pytest.raises(InvalidInputError, match=r"(site|a.parquet) must hold values"):
            reads.pop(name)()
    assert all(read() is not None for read in reads.values())
