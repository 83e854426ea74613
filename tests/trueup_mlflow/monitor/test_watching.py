"""A watched folder: whatever is wrong with a file, the watch goes on and nothing is lost."""

from __future__ import annotations

import os
import time

import pandas as pd
import pytest
from click.testing import CliRunner
from tests.trueup_mlflow.monitored import URI, draw, registered

from trueup.errors import TrueupWarning
from trueup_cli.monitor.commands import monitor as command
from trueup_mlflow import monitor
from trueup_mlflow.monitor.batch.watching import _say_skipped

pytestmark = [
    # MLflow's progress bar and its model loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]
store = pytest.fixture(scope="module")(registered)


def settled(path):
    """Make a file look as if it had been left alone for a while."""
    os.utime(path, (time.time() - 60, time.time() - 60))
    return path


def watch(folder, *options):
    return CliRunner().invoke(command, ["watch", URI, str(folder), "--once", *options])


def days():
    return {record.day for record in monitor.records(URI)}


def test_broken_files_are_rejected_with_the_reason_and_nothing_is_overwritten(store, tmp_path):
    good = draw(60, start=1_000).drop(columns="y")
    good.to_parquet(tmp_path / "good-2026-01-31.parquet")
    content = (tmp_path / "good-2026-01-31.parquet").read_bytes()
    (tmp_path / "half-2026-01-31.parquet").write_bytes(content[:100])
    (tmp_path / "empty-2026-01-31.csv").write_text("")
    (tmp_path / "zip-2026-01-31.csv.gz").write_bytes(b"\x1f\x8b\x08broken")
    (tmp_path / "big-2026-01-31.csv").write_text(f"a,b,id\n{'9' * 400},1,1\n")
    (tmp_path / "latin-2026-01-31.csv").write_bytes("a,b,id\nä,1,1\n".encode("latin-1"))
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "rejected").mkdir()
    (tmp_path / "rejected" / "empty-2026-01-31.csv").write_text("an earlier one")
    for path in tmp_path.glob("*2026*"):
        settled(path)
    ran = watch(tmp_path, "--name-pattern", r"(\d{4}-\d\d-\d\d)\.")
    assert ran.exit_code == 2, ran.output
    assert [path.name for path in (tmp_path / "done").iterdir()] == ["good-2026-01-31.parquet"]
    rejected = {path.name for path in (tmp_path / "rejected").iterdir()}
    assert len([name for name in rejected if name.endswith(".reason.txt")]) == 7
    assert {"empty-2026-01-31.csv", "empty-2026-01-31-2.csv", "pipe.csv"} < rejected
    assert (tmp_path / "rejected" / "empty-2026-01-31.csv").read_text() == "an earlier one"
    assert not [path for path in tmp_path.iterdir() if path.name not in ("done", "rejected")]
    assert "2026-01-31" in days()


def test_names_that_are_no_text_or_as_long_as_can_be_end_no_watch(store, tmp_path):
    longest = "x" * 251 + ".csv"
    names = [os.fsdecode(b"bad\xff.csv"), longest, "a\nb.csv", "\x1b[2J.csv"]
    for name in names:
        (tmp_path / name).write_text("a,b,id\n1,2\n")
        settled(tmp_path / name)
    (tmp_path / "rejected").mkdir()
    (tmp_path / "rejected" / longest).write_text("an earlier one")
    ran = watch(tmp_path)
    assert ran.exit_code == 2, ran.output
    assert "\x1b" not in ran.output
    rejected = os.listdir(tmp_path / "rejected")
    assert len([name for name in rejected if name.endswith(".reason.txt")]) == len(names)
    assert len([name for name in rejected if not name.endswith(".reason.txt")]) == len(names) + 1
    assert os.listdir(tmp_path) == ["rejected"]


def test_times_come_from_a_column_and_a_growing_file_is_waited_for(store, tmp_path):
    rows = draw(60, start=2_000).drop(columns="y").assign(day="05.02.2026")
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)  # modified just now: it may still grow
    ran = watch(tmp_path, "--time-column", "day", "--time-format", "%d.%m.%Y")
    assert ran.exit_code == 0, ran.output
    assert "2026-02-05" in days()
    assert pd.read_csv(tmp_path / "done" / "rows.csv").shape == (60, 4)


def test_the_worst_batch_gives_the_exit_code(store, tmp_path):
    draw(60, start=3_000, shift=9.0).drop(columns="y").to_parquet(tmp_path / "far.parquet")
    settled(tmp_path / "far.parquet")
    ran = watch(tmp_path)
    assert ran.exit_code == 3
    assert "NOT TO BE TRUSTED: outside of the reference" in ran.output
    both = watch(tmp_path, "--modified-time", "--time-column", "day")
    assert both.exit_code == 2
    assert "exclude each other" in both.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seconds", "nan"), "--seconds must be above 0"),
        (("--seconds", "-1"), "--seconds must be above 0"),
        (("--seconds", "1e9"), "--seconds must be above 0"),
        (("--once", "--name-pattern", "("), "--name-pattern must be a regular expression"),
        (("--once", "--name-pattern", "rows_.*"), "with a group around the time"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_file_moves(store, tmp_path, options, message):
    (tmp_path / "rows.csv").write_text("a,b,id\n")
    settled(tmp_path / "rows.csv")
    ran = CliRunner().invoke(command, ["watch", URI, str(tmp_path), *options])
    assert ran.exit_code == 2, ran.output
    assert message in ran.output
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_a_gate_is_not_open_because_nothing_was_looked_at(store):
    for uri in ("models:/churn/1", "models:/nothing"):
        ran = CliRunner().invoke(command, ["status", uri])
        assert ran.exit_code == 2, ran.output
        assert "must be of versions with a batch" in ran.output


@pytest.mark.parametrize("threshold", ["nan", "-1", "0", "inf", "x"])
def test_thresholds_of_a_report_are_errors_above_0(store, tmp_path, threshold):
    monitor.estimate(URI, draw(60, start=4_000).drop(columns="y"), at="2026-03-01")
    options = ["report", URI, "--output", str(tmp_path / "r.html"), "--threshold", threshold]
    ran = CliRunner().invoke(command, options)
    assert ran.exit_code == 2, ran.output
    assert "--threshold must be a number above 0" in ran.output
    assert not (tmp_path / "r.html").exists()


def test_endings_are_read_in_upper_case_and_other_files_are_named_once(store, tmp_path):
    batch = draw(60, start=50_000).drop(columns="y")
    batch.to_csv(tmp_path / "A.CSV", index=False)
    batch.assign(a=batch["a"] + 0.1).to_parquet(tmp_path / "B.PARQUET")
    for name in ("r.tsv", "notes.txt", ".hidden", "c.csv.tmp"):
        (tmp_path / name).write_text("x")
    with pytest.warns(TrueupWarning, match=r"files must end in .parquet, .csv or .csv.gz") as said:
        watch(tmp_path)
    assert {path.name for path in (tmp_path / "done").iterdir()} == {"A.CSV", "B.PARQUET"}
    skipped = [str(one.message) for one in said if "is skipped" in str(one.message)]
    assert [text.split("'")[1] for text in skipped] == ["notes.txt", "r.tsv"]


def test_a_file_that_is_skipped_is_named_at_the_first_look_only(tmp_path):
    (tmp_path / "r.tsv").write_text("x")
    said = set()
    with pytest.warns(TrueupWarning, match="'r.tsv' is skipped"):
        _say_skipped(tmp_path, said)
    _say_skipped(tmp_path, said)  # a second warning would be an error
