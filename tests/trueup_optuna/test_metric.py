"""With a budget the study chooses its metric, says which and why, and can be told."""

from __future__ import annotations

import logging
import logging.handlers
import math

import numpy as np
import optuna
import pytest

from trueup.errors import InvalidInputError, StateMismatchError
from trueup_optuna import (
    SeedList,
    SeedObjective,
    SeedRacePruner,
    confirm,
    finals,
    report_study,
    select_best,
)
from trueup_optuna.metric import log_ratio_and_bound

SIGNAL = np.random.default_rng(0).normal(size=400)
LABELS = np.random.default_rng(1).random(400) < 1.0 / (1.0 + np.exp(-SIGNAL))


def biased(trial, seed):
    """A seed moves the mean of the predictions, which calibration takes away, and little else."""
    noise = np.random.default_rng(seed)
    logit = trial.suggest_float("rate", 0.1, 2.0) * SIGNAL + 0.3 * noise.normal()
    return LABELS, 1.0 / (1.0 + np.exp(-logit - 0.02 * noise.normal(size=400)))


def scaled(trial, seed):
    """A seed changes what calibration leaves as it is."""
    rate = trial.suggest_float("rate", 0.1, 2.0) + 0.1 * np.random.default_rng(seed).normal()
    return LABELS, 1.0 / (1.0 + np.exp(-rate * SIGNAL))


def number(trial, seed):
    return trial.suggest_float("x", 0.0, 1.0) + 0.01 * seed


def searched(train, budget=20, pruner=None, storage=None, **arguments):
    study = optuna.create_study(
        storage=storage,
        study_name="metric",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=pruner or optuna.pruners.NopPruner(),
    )
    study.optimize(SeedObjective(train, seeds=SeedList(8, confirm=2), budget=budget, **arguments))
    return study


@pytest.mark.parametrize(("train", "metric"), [(biased, "calibrated"), (scaled, "vanilla")])
def test_a_budget_goes_by_the_quieter_metric_and_says_so_once(train, metric):
    logger, heard = logging.getLogger("optuna.trueup"), logging.handlers.MemoryHandler(100)
    logger.addHandler(heard)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        study = searched(train)
        finals(study, train)
    finally:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        logger.removeHandler(heard)
    report = report_study(study)
    assert (study.user_attrs["trueup:goes_by"], report.goes_by) == (metric, metric)
    assert report.goes_by_reason == study.user_attrs["trueup:goes_by_reason"]
    (said,) = heard.buffer
    assert f"goes by the {metric} metric: {report.goes_by_reason}" in said.getMessage()


def test_all_that_is_selected_and_confirmed_is_in_the_metric():
    study = searched(biased, goes_by="vanilla")
    table = finals(study, biased)
    for row in table.rows:
        assert row.mean == pytest.approx(np.mean([record.vanilla for record in row.records]))
    assert select_best(study).mean == table.rows[0].mean
    kept = confirm(study, biased, n_seeds=2)
    trial = optuna.trial.FixedTrial(kept.params)
    y, p = biased(trial, 8)
    assert kept.values[0] == pytest.approx(-np.log(np.where(y, p, 1.0 - p)).mean())
    other = report_study(study).vanilla
    assert other is not None
    assert other.number == table.selected


def test_what_was_asked_for_stays():
    storage = optuna.storages.InMemoryStorage()
    study = searched(biased, goes_by="vanilla", storage=storage)
    assert report_study(study).goes_by_reason is None
    with pytest.raises(StateMismatchError, match=r"goes_by must be .* 'vanilla'; got 'calibrated'"):
        searched(biased, 30, goes_by="calibrated", storage=storage)
    searched(biased, 30, storage=storage)  # left out: as begun
    study = optuna.create_study()
    study.optimize(SeedObjective(biased, seeds=[0, 1]), n_trials=2)
    with pytest.raises(StateMismatchError, match=r"goes_by must be .* 'calibrated'; got 'vanilla'"):
        study.optimize(SeedObjective(biased, seeds=[0, 1], goes_by="vanilla"), n_trials=1)
    with pytest.raises(InvalidInputError, match='goes_by must be "calibrated" or'):
        SeedObjective(biased, seeds=[0, 1], goes_by="both")


def test_a_race_compares_calibrated_reports_and_numbers_have_one_metric():
    study = searched(scaled, pruner=SeedRacePruner(None))
    report = report_study(study)
    assert report.goes_by == "calibrated"
    assert "SeedRacePruner compares what is reported from the first trial on" in (
        report.goes_by_reason or ""
    )
    asked = searched(scaled, pruner=SeedRacePruner(None), goes_by="calibrated")
    assert report_study(asked).goes_by_reason is None
    assert report_study(searched(number, pruner=SeedRacePruner(None))).goes_by_reason is None
    study = searched(number)
    finals(study, number)
    assert "trueup:goes_by" not in study.user_attrs
    with pytest.warns(UserWarning, match="goes_by has no effect"):
        searched(number, goes_by="vanilla")


def test_the_bound_is_the_ratio_where_all_agree_and_open_where_one_decides():
    first = np.array([1.0, 4.0, 2.0])
    assert log_ratio_and_bound(first, 10.0 * first) == pytest.approx((-math.log(10.0),) * 2)
    assert log_ratio_and_bound(first, np.array([1.0, 0.0, 0.0])) == (math.log(7.0), math.inf)
    low, high = log_ratio_and_bound(first, np.array([2.0, 4.0, 9.0]))
    assert low == pytest.approx(math.log(7.0 / 15.0))
    assert high > low
