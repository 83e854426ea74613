"""A file to write is refused before the work where there is no folder for it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from trueup_cli.app import app

ROWS = ["rows.csv", "--proba", "none"]  # the work would fail: there is no such column


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--table", ["calibrate", *ROWS, "--target", "click"]),
        ("--figure", ["calibrate", *ROWS, "--target", "click", "--time", "click"]),
        ("--output", ["apply", *ROWS, "--calibrator", "."]),
        ("--figure", ["tune", "report", "--storage", "none.journal"]),
        ("--output", ["report", "none"]),
        ("--output", ["monitor", "report", "models:/none/1"]),
    ],
)
def test_the_folder_of_a_new_file_must_be_there(option, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("click,p\n0,0.3\n1,0.6\n")
    result = CliRunner().invoke(app, [*command, option, "none/new.csv"])
    assert result.exit_code == 2
    said = f"{option} must be in a folder that exists; got 'none/new.csv'. Make the folder first."
    assert said in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
