"""What was selected and confirmed is a sentence, a table and a picture."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure
from tests.trueup_optuna.six_trials import six_trials, train

from trueup.errors import InvalidInputError
from trueup_optuna import confirm, finals, report_study, select_best
from trueup_optuna.final.confirmation import kept_confirmation


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


def test_a_confirmation_is_read_again_without_a_training(study):
    assert kept_confirmation(study) is None
    confirmed = confirm(study, train)  # all three that are reserved, which are less than five
    assert confirmed.n == 3
    assert kept_confirmation(study) == confirmed
    against = confirm(study, train, against={"x": 0.9}, n_seeds=2)
    assert against.rival == {"x": 0.9}
    assert kept_confirmation(study) == confirmed


def test_the_interval_of_a_confirmation_is_students(study):
    confirmed = confirm(study, train)
    ends = scipy.stats.t.interval(
        0.95, 2, confirmed.mean, np.std(confirmed.values, ddof=1) / np.sqrt(3.0)
    )
    assert (confirmed.low, confirmed.high) == pytest.approx(ends, rel=1e-12)


def test_more_seeds_than_reserved_are_refused_with_both_mends(study):
    with pytest.raises(InvalidInputError, match=r"got 5. Pass n_seeds=3, or begin the study"):
        confirm(study, train, n_seeds=5)
