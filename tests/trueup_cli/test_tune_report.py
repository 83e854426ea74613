"""What ``trueup tune report`` says of a study, in words."""

from __future__ import annotations

import pytest
from tests.trueup_cli.tune_script import arguments, invoke

LUCKY = """
def train(trial, seed):
    x = trial.suggest_float("x", 0.0, 0.001)
    return {sign} * (2.0 + x + ({late} if seed >= 3 else 0.0) + 0.001 * (seed % 2))
"""
SMALL = ["my_script.py:train", "--trials", "3", "--confirm", "2", "--finals", "4"]


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1), ("maximize", -1)])
@pytest.mark.parametrize(
    ("late", "words"),
    [
        (0.5, " better than the selected mean: optimistic, from a lucky seed\n"),
        (-0.5, " worse than the selected mean\n"),
    ],
)
def test_the_report_says_on_which_side_of_the_mean_optunas_value_is(
    folder, direction, sign, late, words
):
    """The seeds of the search are lucky or unlucky against those of the finals."""
    (folder / "my_script.py").write_text(LUCKY.format(sign=sign, late=late))
    result = invoke(*SMALL, "--direction", direction)
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines(True) if "Optuna's best" in line)
    assert line.endswith(words)
    distance = line.split(", ")[1].split()[0]
    assert 0.0 < float(distance) <= 0.5  # no sign: the word says it


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_report_says_where_optunas_value_is_the_mean(folder, direction):
    (folder / "my_script.py").write_text(LUCKY.format(sign=1, late=0.0))
    result = invoke(*SMALL[:-1], "0", "--direction", direction)
    assert result.exit_code == 0, result.output
    assert ", the same as the selected mean\n" in result.output


def test_the_report_explains_its_columns(folder):
    early = ["--variance", "own", "--finals", "0", "--confirm", "0"]  # too early to eliminate
    (legend,) = invoke(*arguments(*early)).output.splitlines()[-1:]
    assert legend.startswith("P(best): chance of the best true mean among those in the race")
    (folder / "my_script.py").write_text(
        "def train(trial, seed):\n"
        "    return trial.number + 0.001 * ((7 * seed + 3 * trial.number) % 5)\n"
    )
    given = ["--storage", "other.journal", "--variance", "own", "--n-base", "8", "--finals", "4"]
    result = invoke("my_script.py:train", "--trials", "4", "--confirm", "0", *given)
    assert result.exit_code == 0, result.output
    assert "    trial 0\n" in result.output
    legend = result.output.split("\n\n")[-1].splitlines()
    assert legend[0].endswith("with at least 5 seeds; empty for all others.")
    assert legend[1].startswith("eliminated by: out of the race, because that trial was better")
