"""What was selected and confirmed is a sentence, a table and a picture."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from tests.trueup_optuna.six_trials import six_trials, train

from trueup_optuna import confirm, finals, report_study, select_best


@pytest.fixture
def study():
    return six_trials()


def test_selected_and_confirmed_configurations_say_their_numbers(study):
    best, confirmed = select_best(study), confirm(study, train, n_seeds=3)
    assert str(best).startswith(f"Trial {best.trial.number}: {best.mean:.5g} ± ")
    assert str(confirmed).startswith(f"On 3 fresh seeds the mean is {confirmed.mean:.5g} [")
    for result in (best, confirmed):
        axes = result.plot(Figure().add_subplot())
        assert axes.get_title(loc="left") == result.summary()
        assert f"{result.mean:.5g}" in result._repr_html_()


def test_tables_and_reports_draw_the_best_configurations(study):
    table, report = finals(study, train, budget=4), report_study(study)
    assert table.summary().startswith(f"Trial {table.selected} of 6 configurations, after ")
    assert report.summary() == report.best.summary()
    for result in (table, report):
        axes = result.plot(Figure().add_subplot())
        first = table.rows[0]
        label = f"trial {first.number}, {first.n_seeds} seeds, selected"
        assert axes.get_yticklabels()[-1].get_text() == label
        assert f"{first.mean:.5g}" in str(result)
