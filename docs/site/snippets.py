"""Run the snippets of a page, and hold what they print against what the page shows.

The ``python`` blocks of a page make one program; then its ``console`` blocks are typed in the same
folder, line by line. An ``output`` block shows what the python block above it prints, and the lines
below a ``$`` line what the command prints; ``...`` stands for any text, and numbers may differ in
the last digits. ``python docs/site/snippets.py PAGE...`` writes the output of python blocks anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
MARK = "\x1e"  # printed after each python block
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$")
TOLERANCE = 1e-6


@dataclass
class Snippet:
    """A block that runs, and what the page shows that it prints; None where nothing is shown."""

    language: str
    body: str
    end: int
    shown: str | None = None
    shown_end: int | None = field(default=None, compare=False)


def snippets(text: str) -> list[Snippet]:
    """Return the python and console blocks of a page, each with the output that follows it."""
    found: list[Snippet] = []
    for match in BLOCK.finditer(text):
        language, body = match.groups()
        if language in ("python", "console"):
            found.append(Snippet(language, body, match.end()))
        elif language == "output":
            assert not text[found[-1].end : match.start()].strip(), "output stands below its block"
            found[-1].shown, found[-1].shown_end = body, match.end()
    return found


def run_python(found: list[Snippet], folder: Path, environment: dict[str, str]) -> list[str]:
    """Run the python blocks as one program, and return what each prints."""
    program = [s.body + f'\nprint("{MARK}")\n' for s in found if s.language == "python"]
    if not program:
        return []
    (folder / "page.py").write_text("".join(program))
    printed = _printed(["python", "page.py"], folder, environment)
    return [part.lstrip("\n") for part in printed.split(MARK)[:-1]]


def run_console(
    snippet: Snippet, folder: Path, environment: dict[str, str]
) -> list[tuple[str, str]]:
    """Type the commands of a block; return what each shows and what it prints."""
    found = []
    for typed in snippet.body.split("$ ")[1:]:
        command, _, shown = typed.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        found.append((shown, _printed(["bash", "-euc", command], folder, environment)))
    return found


def differs(shown: str, printed: str) -> str | None:
    """Return the first line that is not as shown, or None."""
    wanted, got = shown.split("\n"), printed.split("\n")
    while wanted and wanted[-1] == "":
        wanted.pop()
    got = got[: len(got) - next((i for i, line in enumerate(reversed(got)) if line), len(got))]
    for line, other in zip(wanted, got, strict=False):
        if line.strip() == "...":
            return None
        if not _same_line(line, other):
            return f"shown {line!r}, printed {other!r}"
    return None if len(wanted) == len(got) else f"shown {len(wanted)} lines, printed {len(got)}"


def environment_for(
    folder: Path, programs: Path | str = Path(sys.executable).parent
) -> dict[str, str]:
    """Return an environment with a store of its own and our programs on the path."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "TRUEUP_"))}
    return {
        **inherited,
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
        "COLUMNS": "100",
    }


def _same_line(shown: str, printed: str) -> bool:
    words, others = re.split(r"([\s,()\[\]{}:=]+)", shown), re.split(r"([\s,()\[\]{}:=]+)", printed)
    if "..." in shown:
        pattern = ".*".join(map(re.escape, shown.split("...")))
        return re.fullmatch(pattern, printed) is not None
    return len(words) == len(others) and all(map(_same_word, words, others))


def _same_word(shown: str, printed: str) -> bool:
    if NUMBER.match(shown) and NUMBER.match(printed):
        return abs(float(shown) - float(printed)) <= TOLERANCE * max(1.0, abs(float(shown)))
    return shown.rstrip() == printed.rstrip()


def _printed(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"{run.args} exited {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run.stdout


def rewrite(page: Path) -> None:
    """Write what the python blocks of a page print below each of them."""
    text = page.read_text()
    found = [s for s in snippets(text) if s.language == "python"]
    with tempfile.TemporaryDirectory() as folder:
        printed = run_python(found, Path(folder), environment_for(Path(folder)))
    for snippet, output in reversed(list(zip(found, printed, strict=True))):
        if snippet.shown is not None and differs(snippet.shown, output) is None:
            continue
        block = f"\n```output\n{output.rstrip()}\n```\n" if output.strip() else ""
        text = text[: snippet.end] + block + text[snippet.shown_end or snippet.end :]
    page.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name))
