"""Every snippet of the README and the docs runs, in the order in which it is read.

The ``python`` blocks of a page make one program; then its ``console`` blocks are typed in the same
folder, line by line. ``text`` blocks show output or commands that install things.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(page.read_text()) if name == language]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def environment(tmp_path):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "TRUEUP_"))}
    return {
        **inherited,
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'mlflow.db'}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_snippet_runs(page, tmp_path, environment):
    commands = []
    if program := "\n".join(blocks(page, "python")):
        (tmp_path / "page.py").write_text(program)
        commands.append([sys.executable, "page.py"])
    for body in blocks(page, "console"):
        typed = [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]
        assert typed, f"a console block of {page.name} types nothing"
        commands.extend(["bash", "-euc", line] for line in typed)
    for command in commands:
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    fences = re.findall(r"^```(\w*)$", page.read_text(), re.MULTILINE)
    assert set(fences[::2]) <= {"python", "console", "text", "toml", "yaml", "makefile"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_inside_the_project_leads_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target
