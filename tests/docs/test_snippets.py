"""Every snippet of the README and the docs runs, and prints what the page shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.databases import new_database
from tests.warm import PROGRAMS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))
from snippets import differs, environment_for, run_console, run_python, snippets  # noqa: E402

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
LANGUAGES = {"python", "console", "output", "text", "toml", "yaml", "makefile"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_snippet_runs_and_prints_what_is_shown(page, tmp_path):
    new_database(tmp_path)
    environment = environment_for(tmp_path, PROGRAMS)
    found = snippets(page.read_text())
    programs = [snippet for snippet in found if snippet.language == "python"]
    outputs = run_python(programs, tmp_path, environment)
    for snippet, printed in zip(programs, outputs, strict=True):
        if snippet.shown is not None:
            assert differs(snippet.shown, printed) is None, differs(snippet.shown, printed)
    for snippet in (snippet for snippet in found if snippet.language == "console"):
        commands = run_console(snippet, tmp_path, environment)
        assert commands, f"a console block of {page.name} types nothing"
        for shown, printed in commands:
            if shown.strip():
                assert differs(shown, printed) is None, differs(shown, printed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    fences = re.findall(r"^```(\w*)$", page.read_text(), re.MULTILINE)
    assert set(fences[::2]) <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_inside_the_project_leads_somewhere(page):
    generated = ROOT / "docs" / "reference"
    for target in LINK.findall(page.read_text()):
        place = page.parent / target
        assert place.exists() or place.resolve().parent == generated, target


def test_a_changed_number_is_noticed():
    assert differs("0.5 and [1, 2]\n", "0.5000000001 and [1, 2]\n\n") is None
    assert differs("0.5\n", "0.51\n") == "shown '0.5', printed '0.51'"
    assert differs("run ... done\n", "run 17 done\n") is None
    assert differs("one\n", "one\ntwo\n") == "shown 1 lines, printed 2"
