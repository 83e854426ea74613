from __future__ import annotations

from html import escape

import matplotlib as mpl
import numpy as np
import pytest

from trueup import bias_cost_interval, bias_test, evaluate, field_calibration
from trueup.calibrators import PlattCalibrator, ShiftCalibrator, compare_calibrators
from trueup.comparison import (
    compare,
    compare_both,
    compare_many,
    paired_win_rate,
    required_seeds,
    variance_reduction,
)

mpl.use("agg")
A, B = [0.41, 0.42, 0.40, 0.43], [0.44, 0.45, 0.42, 0.44]


def seeded(values, shift=0.0):
    """Return values by seed, often enough that every interval is finite."""
    return {seed: value + shift for seed, value in enumerate(4 * values)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.6, 400)
    return rng.random(400) < p, p + 0.1, rng.choice(["<b>news</b>", "shop"], 400)


def test_an_evaluation_is_a_sentence_and_a_table(rows):
    click, p, site = rows
    result = evaluate(click, p, fields={"site": site})
    first, empty, *table = str(result).split("\n")
    assert first.startswith("log_loss ")
    assert f"{result.calibrated:.5g}" in first
    assert empty == ""
    assert [line.split()[0] for line in table] == ["vanilla", "calibrated", "ECE"]
    low = result.vanilla - 1.96 * result.standard_errors.vanilla
    assert f"[{low:.5g}, " in table[0]


def test_names_of_levels_are_text_in_a_notebook(rows):
    click, p, site = rows
    page = field_calibration(click, p, site)._repr_html_()
    assert "&lt;b&gt;news" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    "result",
    [
        lambda click, p, site: evaluate(click, p),
        lambda click, p, site: field_calibration(click, p, site),
        lambda click, p, site: bias_cost_interval(click, p, n_resamples=100),
        lambda click, p, site: bias_test(click, p),
        lambda click, p, site: paired_win_rate(A, B),
        lambda click, p, site: variance_reduction(A, B),
        lambda click, p, site: required_seeds(A, B),
        lambda click, p, site: compare({0: 1.0, 1: 1.1, 2: 0.9}, {0: 1.2, 1: 1.2, 2: 1.3}),
        lambda click, p, site: compare_many(
            {name: seeded(A, shift) for name, shift in (("deep", 0.0), ("wide", 0.1))}, seeded(B)
        ),
        lambda click, p, site: compare_both(
            (seeded(A), seeded(B)), (seeded(A, -0.01), seeded(B, -0.02))
        ),
        lambda click, p, site: compare_calibrators(
            click,
            p,
            {"site": site},
            field="site",
            shuffle=True,
            calibrators={"shift": ShiftCalibrator(), "platt": PlattCalibrator()},
        ),
    ],
)
def test_the_picture_has_each_number_with_its_interval(rows, result):
    found = result(*rows)
    ax = found.plot()
    lines = found.lines()
    assert [label.get_text() for label in ax.get_yticklabels()] == [n.name for n in lines[::-1]]
    drawn = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
    assert drawn == [line.value for line in lines[::-1]]
    assert found.plot(ax) is ax
    assert escape(lines[0].name) in found._repr_html_()
    mpl.pyplot.close("all")
