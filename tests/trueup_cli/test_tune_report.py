"""What ``trueup tune report`` says of a study, in words, as JSON and as a figure."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.trueup_cli.tune_script import arguments, invoke

from trueup_cli.tune.report import report_text, save_figure
from trueup_cli.tune.storage import load_study
from trueup_optuna import report_study
from trueup_optuna.study.study_report import LeftOut

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


def test_the_report_tells_what_was_confirmed(folder):
    (folder / "my_script.py").write_text(LUCKY.format(sign=1, late=0.0))
    ran = invoke(*SMALL)
    assert ran.exit_code == 0, ran.output
    told = ran.output[ran.output.index("confirmed on 2 fresh seeds") :].strip()
    assert invoke("report").output.strip().endswith(told)
    kept = json.loads(invoke("report", "--json").output)["confirmation"]
    assert f"{kept['mean']:.6g} [{kept['low']:.6g}, {kept['high']:.6g}]" in told


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


def test_report_prints_and_draws(folder):
    invoke(*arguments())
    text = invoke("report", "--plot", "report.png")
    assert text.exit_code == 0
    assert "seeds  mean ± standard error" in text.output
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads(invoke("report", "--json").output)
    report = report_study(load_study("trueup-study.journal", "trueup"))
    assert content["selected"]["number"] == report.best.trial.number
    assert [row["number"] for row in content["rows"]] == [row.number for row in report.rows]
    assert 0 < content["final_trainings"] <= 5


def test_the_figure_sets_calibrated_against_vanilla(folder, monkeypatch):
    invoke(*arguments())
    report = report_study(load_study("trueup-study.journal", "trueup"))
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path: drawn.append(self))
    save_figure(report, folder / "report.png")
    save_figure(replace(report, vanilla=None), folder / "report.png")
    assert [len(figure.axes) for figure in drawn] == [3, 2]
    seeds = drawn[0].axes[0]
    for axis in (seeds.xaxis, seeds.yaxis):
        assert all(float(place).is_integer() for place in axis.get_ticklocs())
    labels = [text.get_text() for text in seeds.get_legend().get_texts()]
    gone = any(row.eliminated_by is not None for row in report.rows)
    assert labels == ["in the race", "eliminated"][: 1 + gone]
    points = drawn[0].axes[2].collections[0].get_offsets()
    expected = [
        [np.mean([s.vanilla for s in row.records]), np.mean([s.value for s in row.records])]
        for row in report.rows
    ]
    np.testing.assert_allclose(np.asarray(points), expected, rtol=1e-12)


def test_a_trial_that_is_left_out_says_why_in_a_line(folder):
    invoke(*arguments())
    report = report_study(load_study("trueup-study.journal", "trueup"))
    left_out = {9: LeftOut("failed", "got ValueError: first line\n  second line")}
    why = "got ValueError: first line second line"
    line = f"left out because a seed failed: 1, the last trial 9: {why}"
    assert line in report_text(replace(report, left_out=left_out)).splitlines()


def test_report_of_a_missing_study_exits_with_2(folder):
    result = invoke("report")
    assert result.exit_code == 2
    assert "study must exist in" in result.output
