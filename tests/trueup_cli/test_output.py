"""Nothing that the command prints is obeyed by a terminal, or holds a credential."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner
from tests.terminal import on_terminal

from trueup_cli.app import app
from trueup_cli.shell.output import shown

CLEAR_AND_TITLE = "\x1b[2J\x1b]0;owned\x07\r"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\n", "a\tb\n"),
        ("é 漢字 🙂", "é 漢字 🙂"),
        (CLEAR_AND_TITLE, r"\x1b[2J\x1b]0;owned\x07\r"),
        ("\x9b2J\x00", r"\x9b2J\x00"),
        ("batch\u202evsc.exe", r"batch\u202evsc.exe"),
        ("s3://me:pass/word@bucket", "s3://me:***@bucket"),
    ],
)
def test_control_characters_and_credentials_are_spelled_out(text, expected):
    assert shown(text) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", f"{CLEAR_AND_TITLE}.csv", "--target", "y", "--proba", "p"],
        [CLEAR_AND_TITLE],
        ["monitor", CLEAR_AND_TITLE],
        ["monitor", "watch", "models:/m/1", CLEAR_AND_TITLE],
        ["tune", CLEAR_AND_TITLE, f"--{CLEAR_AND_TITLE}"],
    ],
    ids=lambda arguments: arguments[0][:10].strip("\x1b"),
)
def test_names_of_files_and_options_are_shown(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert r"\x1b[2J" in result.output
    assert not set(result.output) & set("\x1b\x07\r")


def test_a_column_of_a_file_is_shown(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(f'y,"{CLEAR_AND_TITLE}"\n1,0.5\n'.encode())
    result = CliRunner().invoke(app, ["evaluate", str(path), "--target", "y", "--proba", "p"])
    assert result.exit_code == 2
    assert "\x1b" not in result.output


WORK = """
import sys
from trueup_cli.shell import output

output._PATIENCE = {patience}
with output.progress("compare", "decision", {total}) as count:
    count()
    input()
    output.echo("a result")
print("tqdm" in sys.modules)
"""


@pytest.mark.parametrize(("total", "shown"), [(4, "compare:  25%"), (None, "compare: 1decision")])
def test_a_terminal_sees_how_far_long_work_is(total, shown):
    work = WORK.format(patience=0.1, total=total)
    seen, output, _ = on_terminal([sys.executable, "-c", work], until=shown)
    assert shown in seen
    assert seen.rpartition("\r")[2].strip() == ""  # nothing is left of the bar
    assert output == "a result\nTrue\n"


def test_short_work_shows_nothing_and_loads_nothing():
    work = WORK.format(patience=600.0, total=4).replace("input()", "")
    seen, output, _ = on_terminal([sys.executable, "-c", work])
    assert seen == ""
    assert output == "a result\nFalse\n"


def test_where_nobody_looks_nothing_is_shown():
    work = WORK.format(patience=0.01, total=4).replace("input()", "time.sleep(0.5)")
    run = subprocess.run(
        [sys.executable, "-c", f"import time\n{work}"], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
