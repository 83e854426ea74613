from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from trueup import expected_calibration_error
from trueup.errors import InvalidInputError
from trueup_mlflow.write.figures import reliability_diagram, seed_distributions


def seeds(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.43, 6e-4, n), rng.normal(0.429, 3e-4, n)


def test_seed_distributions_have_one_panel_a_metric_with_one_range():
    vanilla, calibrated = seeds()
    first, second = seed_distributions(vanilla, calibrated, metric="auc").axes
    assert [axes.get_xlabel() for axes in (first, second)] == ["auc", "calibrated_auc"]
    assert first.get_xlim() == second.get_xlim()
    low, high = first.get_xlim()
    assert low < min(vanilla.min(), calibrated.min())
    assert high > max(vanilla.max(), calibrated.max())
    assert first.get_ylim() == second.get_ylim()


def test_seed_distributions_show_each_seed_and_the_standard_deviation():
    vanilla, calibrated = seeds()
    axes = seed_distributions({"A": vanilla, "B": vanilla + 1e-3}, {"A": calibrated, "B": vanilla})
    lines = axes.axes[0].get_lines()
    np.testing.assert_array_equal(lines[0].get_xdata(), vanilla)
    labels = [text.get_text() for text in axes.axes[0].get_legend().get_texts()]
    assert labels[0] == f"A: sd {np.std(vanilla, ddof=1):.2g}, 12 seeds"
    assert len(labels) == 2


@pytest.mark.parametrize(
    ("values", "title"),
    [
        ([0.4, 0.5], "2 seeds"),
        ([0.4], "1 seed"),
        ({"MLP": [0.4, 0.5, 0.6]}, "MLP: 3 seeds"),
        ({"A": [0.4, 0.5], "B": [0.4, 0.5]}, "A, B: 2 seeds"),
        ({"A": [0.4, 0.5], "B": [0.4]}, "A (2 seeds), B (1 seed)"),
    ],
)
def test_title_names_the_pipelines_and_the_number_of_seeds(values, title):
    assert seed_distributions(values, values).get_suptitle() == title


@pytest.mark.parametrize("values", [[0.4], [0.4, 0.4, 0.4, 0.4, 0.4, 0.4], [0.0], [0.1, 0.2]])
def test_few_or_equal_seeds_are_drawn_without_a_density(values, tmp_path):
    figure = seed_distributions(values, values)
    figure.savefig(tmp_path / "seeds.png")
    assert not figure.axes[0].collections


@pytest.mark.parametrize(
    ("vanilla", "calibrated", "message"),
    [
        ([], [], "vanilla must hold a finite value of at least one seed"),
        ([0.4], [np.nan], "calibrated must hold a finite value of at least one seed"),
        ({}, {}, "vanilla must hold a finite value"),
        ({"A": [0.4]}, {"B": [0.4]}, r"calibrated must hold the pipelines of vanilla, \['A'\]"),
    ],
)
def test_seeds_that_cannot_be_drawn_are_refused(vanilla, calibrated, message):
    with pytest.raises(InvalidInputError, match=message):
        seed_distributions(vanilla, calibrated)


def test_reliability_diagram_draws_the_curve_and_names_its_error(tmp_path):
    rng = np.random.default_rng(1)
    logit = rng.normal(-1.0, 1.0, 800)
    proba = 1.0 / (1.0 + np.exp(-logit))
    y = rng.random(800) < proba
    figure = reliability_diagram(y, y_logit=logit, n_bins=5)
    error = expected_calibration_error(y, proba, n_bins=5, strategy="quantile")
    assert f"{error:.4f}" in figure.axes[0].get_title()
    assert len(figure.axes[0].get_lines()[1].get_xdata()) == 5
    figure.savefig(tmp_path / "reliability.png")


def test_reliability_diagram_counts_the_rows_beyond_its_last_bin():
    proba = np.r_[np.linspace(0.005, 0.015, 10_000), 0.99]  # the one lies in a bin with the many
    y = np.arange(10_001) % 100 == 0
    lower = reliability_diagram(y, proba).axes[1]
    shown = sum(bar.get_height() for bar in lower.patches)
    assert shown == 10_000
    assert lower.get_xlabel().startswith("predicted probability (1 rows above 0.0")


def test_reliability_diagram_wants_probabilities_or_logits():
    with pytest.raises(InvalidInputError, match="y_proba must be given, or y_logit"):
        reliability_diagram([0, 1])


def test_figures_leave_pyplot_and_the_backend_alone():
    code = (
        "import sys; from trueup_mlflow.write.figures import seed_distributions as draw;"
        "draw([1.0, 2.0], [1.0, 2.0]); import matplotlib as m;"
        "assert 'matplotlib.pyplot' not in sys.modules; assert m.rcParams == m.rcParamsDefault"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
