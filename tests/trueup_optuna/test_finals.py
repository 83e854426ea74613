from __future__ import annotations

from itertools import pairwise

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from scipy import stats
from tests.trueup_optuna.training import result, train, train_classifier, train_maximized

from trueup import InSample
from trueup.errors import InvalidInputError, StateMismatchError, UndefinedMetricError
from trueup_optuna import (
    SeedList,
    SeedObjective,
    SeedRacePruner,
    confirm,
    finals,
    open_journal,
    report_study,
    select_best,
)
from trueup_optuna.final.race_table import race_table
from trueup_optuna.study.ranking import CONFIG, RECORD, SEED_INDEX, ranking_of
from trueup_optuna.study.study_report import probability_of_lowest
from trueup_optuna.study.trial_state import SeedRecord


def searched(storage=None, name=None, *, n_trials=12, function=train, direction="minimize", **more):
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction=direction,
        sampler=optuna.samplers.RandomSampler(seed=1),
        pruner=SeedRacePruner(n_trials),
    )
    study.optimize(SeedObjective(function, **{"seeds": SeedList(8), **more}), n_trials=n_trials)
    return study


def finished(study, name):
    companion = optuna.load_study(study_name=f"{study.study_name}::{name}", storage=study._storage)
    return [t for t in companion.trials if t.state == TrialState.COMPLETE]


def test_finals_add_seeds_to_the_contenders_within_the_budget(storage, study_name):
    study = searched(storage, study_name, n_trials=10)
    table = finals(study, train, budget=6)
    assert table.final_trainings == 6
    assert table.search_trainings == sum(len(t.intermediate_values) for t in study.trials)
    best = table.rows[0]
    assert best.number == table.selected == select_best(study).trial.number
    values = [result(best.params["x"], seed) for seed in range(best.n_seeds)]
    assert best.n_seeds > 3
    assert best.mean == pytest.approx(np.mean(values))
    assert sum(row.n_seeds for row in table.rows) == table.search_trainings + 6


def test_a_gap_in_the_seeds_costs_the_search_no_training():
    study = searched()
    begun = sum(len(trial.intermediate_values) for trial in study.trials)
    row = min(finals(study, train, budget=10).rows, key=lambda row: row.n_seeds)
    assert row.n_seeds < 7
    companion = optuna.load_study(study_name=f"{study.study_name}::finals", storage=study._storage)
    late = {CONFIG: row.number, SEED_INDEX: 7, RECORD: SeedRecord(0.0, 7).to_attribute()}
    companion.add_trial(create_trial(value=0.0, user_attrs=late))
    table = race_table(study)
    assert (table.search_trainings, table.final_trainings) == (begun, 11)
    assert sum(row.n_seeds for row in table.rows) == begun + 10
    assert report_study(study).search_trainings == begun


def test_finals_resume_and_never_repeat_a_training(storage, study_name):
    study = searched(storage, study_name, n_trials=4)
    finals(study, train, budget=2)
    again = optuna.load_study(study_name=study_name, storage=storage)
    table = finals(again, train, budget=5)
    assert table.final_trainings == 5
    assert finals(again, train, budget=5) == table
    keys = [(t.user_attrs[CONFIG], t.user_attrs[SEED_INDEX]) for t in finished(study, "finals")]
    assert len(set(keys)) == len(keys) == 5


def test_workers_share_the_finals_without_duplicates(storage, study_name):
    study = searched(storage, study_name, n_trials=10)
    table = finals(study, train, budget=12, workers=4)
    keys = [(t.user_attrs[CONFIG], t.user_attrs[SEED_INDEX]) for t in finished(study, "finals")]
    assert len(set(keys)) == len(keys) == table.final_trainings == 12


def test_finals_stop_when_every_contender_has_all_seeds():
    def equal(trial, seed):
        return result(0.001 * trial.suggest_float("x", -1.0, 1.0), seed)

    table = finals(searched(n_trials=3, function=equal), equal, budget=1000)
    assert table.final_trainings == 3 * 8 - 3 * 3
    assert all(row.n_seeds == 8 for row in table.rows if row.eliminated_by is None)


def test_finals_use_the_search_seeds_only():
    seen = set()

    def recording(trial, seed):
        seen.add(seed)
        return train(trial, seed)

    study = searched(function=recording)
    finals(study, recording, budget=60)
    assert seen == set(range(8))
    confirm(study, recording, n_seeds=5)
    assert seen == set(range(13))


def test_maximizing_mirrors_minimizing():
    down = finals(searched(), train, budget=15)
    up = finals(
        searched(function=train_maximized, direction="maximize"), train_maximized, budget=15
    )
    for one, other in zip(down.rows, up.rows, strict=True):
        assert (one.number, one.n_seeds, one.eliminated_by) == (
            other.number,
            other.n_seeds,
            other.eliminated_by,
        )
        assert one.mean == pytest.approx(-other.mean)


def test_a_failing_training_ends_the_finals_and_can_be_resumed():
    study = searched()

    def fails(trial, seed):
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        finals(study, fails, budget=5)
    assert finals(study, train, budget=5).final_trainings == 5


def test_finals_keep_metric_and_split():
    study = searched(function=train_classifier, split=InSample(), n_trials=4)
    finals(study, train_classifier, budget=2)
    with pytest.raises(StateMismatchError, match="metric must be what the study"):
        finals(study, train_classifier, budget=3, loss="brier_score")


def test_finals_need_a_searched_study():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(InvalidInputError, match="must have been run with a SeedObjective"):
        finals(study, train)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 2.5}, "budget must be an integer of at least 0; got 2.5. Give a number of tr"),
        ({"budget": -1}, "budget must be an integer of at least 0; got -1"),
        ({"budget": "9"}, "budget must be an integer of at least 0; got '9'"),
        ({"workers": 0}, "workers must be an integer of at least 1; got 0. Give a number of thr"),
        ({"workers": 1.5}, "workers must be an integer of at least 1; got 1.5"),
        ({"split": "cv"}, "split must be a Split; got 'cv'"),
        ({"heartbeat": 0}, "heartbeat must be above 0 and below grace; got heartbeat 0 and"),
        ({"heartbeat": "a"}, "heartbeat must be above 0 and below grace; got heartbeat 'a'"),
        ({"grace": 10.0}, "heartbeat must be above 0 and below grace; got .* and grace 10.0"),
        ({"grace": None}, "heartbeat must be above 0 and below grace; got .* and grace None"),
    ],
)
def test_finals_check_their_arguments(given, message):
    with pytest.raises(InvalidInputError, match=message):
        finals(searched_alone(), train, **given)


def test_numpy_integers_are_numbers_of_seeds_and_trainings(tmp_path):
    two = np.int64(2)
    study = optuna.create_study(
        storage=open_journal(tmp_path / "journal"),
        sampler=optuna.samplers.RandomSampler(seed=1),
        pruner=SeedRacePruner(two, alpha=np.float32(0.05)),
    )
    seeds = SeedList(np.int64(8), confirm=two)
    study.optimize(SeedObjective(train, seeds=seeds, n_base=two), n_trials=2)
    assert finals(study, train, budget=two).final_trainings == 2
    assert confirm(study, train, n_seeds=two).n == 2


def test_select_best_is_not_the_lucky_seed():
    study = searched(n_base=1, n_startup_seeds=3, n_trials=40)
    best = select_best(study)
    assert best.n_seeds >= 2
    assert best.optimistic_value == study.best_value
    assert best.optimism == pytest.approx(best.mean - study.best_value)
    lonely = searched(n_base=1, n_startup_seeds=1)
    with pytest.raises(UndefinedMetricError, match="at least two seeds; got none"):
        select_best(lonely)


def test_confirmation_equals_its_definition(storage, study_name):
    study = searched(storage, study_name, n_trials=4)
    finals(study, train, budget=4)
    best = select_best(study).trial.params["x"]
    confirmed = confirm(study, train, n_seeds=5, against={"x": 0.9})
    ours = np.array([result(best, seed) for seed in range(8, 13)])
    theirs = np.array([result(0.9, seed) for seed in range(8, 13)])
    assert confirmed.values == tuple(ours)
    assert confirmed.rival_values == tuple(theirs)
    interval = stats.t.interval(0.95, 4, ours.mean(), stats.sem(ours))
    assert (confirmed.mean, confirmed.low, confirmed.high) == pytest.approx(
        (ours.mean(), *interval)
    )
    paired = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    assert confirmed.difference == pytest.approx((ours - theirs).mean())
    assert (confirmed.difference_low, confirmed.difference_high) == pytest.approx(tuple(paired))
    assert confirmed.p_better == 1.0
    assert confirmed.better is True
    assert confirmed.n == 5
    assert confirmed.rival_number is None  # no trial has x = 0.9


def test_confirmation_against_the_runner_up_by_default():
    study = searched()
    table = finals(study, train, budget=20)
    confirmed = confirm(study, train)
    assert confirmed.params == table.rows[0].params
    assert confirmed.rival == table.rows[1].params
    assert confirmed.rival_number == table.rows[1].number
    assert confirmed.lines()[1].name == f"less trial {table.rows[1].number}"
    by_number = confirm(study, train, against=table.rows[1].number)
    by_trial = confirm(study, train, against=study.trials[table.rows[1].number])
    assert by_number == by_trial == confirmed


def test_the_runner_up_has_other_parameters():
    def few(trial, seed):
        x = trial.suggest_categorical("x", [0.0, 0.1])
        return result(x, seed)

    study = searched(function=few, seeds=SeedList(8, confirm=3))
    confirmed = confirm(study, few, n_seeds=3)
    assert {confirmed.params["x"], confirmed.rival["x"]} == {0.0, 0.1}


def test_the_runner_up_may_be_eliminated():
    def far(trial, seed):
        return result(trial.suggest_int("x", 0, 30), seed)

    study = searched(function=far, seeds=SeedList(8, confirm=3))
    finals(study, far, budget=40)
    assert ranking_of(study).contenders.sum() == 1
    confirmed = confirm(study, far, n_seeds=3)
    assert confirmed.rival is not None
    assert confirmed.better


def test_confirmation_of_a_single_configuration_has_no_rival():
    confirmed = confirm(searched(n_trials=2, n_base=8), train)
    alone = confirm(searched_alone(), train)
    assert confirmed.rival is not None
    assert (alone.rival, alone.p_better, alone.difference, alone.better) == (None,) * 4


def searched_alone():
    study = optuna.create_study()
    study.optimize(SeedObjective(train, seeds=SeedList(8)), n_trials=1)
    return study


def test_confirmation_is_kept_and_not_repeated():
    study = searched(n_trials=4)
    first = confirm(study, train)

    def never(trial, seed):
        raise AssertionError

    assert confirm(study, never) == first


@pytest.mark.parametrize(
    ("seeds", "n_seeds", "message"),
    [
        (
            SeedList(8, confirm=4),
            5,
            "n_seeds must be at most the 4 seeds that the study reserved; got 5",
        ),
        ([1, 2, 3], 2, "n_seeds must be at most the 0 seeds that the study reserved; got 2"),
        (SeedList(8), 1, "n_seeds must be an integer of at least 2; got 1. An interval needs two"),
        (SeedList(8), 2.5, "n_seeds must be an integer of at least 2; got 2.5"),
        (SeedList(8), "5", "n_seeds must be an integer of at least 2; got '5'"),
    ],
)
def test_reserved_seeds_run_out(seeds, n_seeds, message):
    study = searched(n_trials=2, seeds=seeds)
    with pytest.raises(InvalidInputError, match=message):
        confirm(study, train, n_seeds=n_seeds)


def test_confirmation_checks_its_arguments():
    study = searched(n_trials=2)
    with pytest.raises(InvalidInputError, match="against must be the number of a trial"):
        confirm(study, train, against=99)
    with pytest.raises(InvalidInputError, match=r"confidence_level must be in \(0, 1\); got 95"):
        confirm(study, train, confidence_level=95)
    with pytest.raises(InvalidInputError, match=r"confidence_level must be in \(0, 1\); got '95%'"):
        confirm(study, train, confidence_level="95%")
    with pytest.raises(InvalidInputError, match="split must be a Split; got 'cv'"):
        confirm(study, train, split="cv")


def test_the_rival_is_another_configuration_with_all_parameters():
    study = searched(n_trials=4)
    best = select_best(study).trial
    study.ask()  # a trial that begins has no parameters yet
    for against in (best.number, best, best.params, {**best.params, "unused": 1}):
        with pytest.raises(
            InvalidInputError,
            match=f"against must be another configuration than the selected one, trial "
            f"{best.number}; got .*Leave against out to meet the runner-up",
        ):
            confirm(study, train, against=against)
    for against in ({}, {"y": 0.3}):
        with pytest.raises(
            InvalidInputError,
            match=r"against must hold all parameters of a configuration, as \{'x': .*; got \{",
        ):
            confirm(study, train, against=against)
    for against in (True, "0", 0.5):
        with pytest.raises(InvalidInputError, match="against must be the number of a trial"):
            confirm(study, train, against=against)
    with pytest.raises(KeyError):
        optuna.load_study(study_name=f"{study.study_name}::confirm", storage=study._storage)
    assert confirm(study, train, against={"x": 0.9, "unused": 1}).rival["x"] == 0.9


def test_a_rival_may_lie_on_a_branch_of_the_space_that_the_winner_is_not_on():
    def branching(trial, seed):
        if trial.suggest_categorical("kind", ["flat", "deep"]) == "flat":
            return result(0.1, seed)
        return result(trial.suggest_float("x", 0.5, 1.0), seed)

    study = searched(function=branching)
    assert select_best(study).trial.params == {"kind": "flat"}
    assert confirm(study, branching, against={"kind": "deep", "x": 0.6}).better
    with pytest.raises(InvalidInputError, match="against must be another configuration"):
        confirm(study, branching, against={"kind": "flat", "x": 0.6})


def test_report_tells_what_the_vanilla_metric_would_have_chosen():
    study = searched(function=train_classifier, n_trials=15)
    finals(study, train_classifier, budget=20)
    report = report_study(study)
    table = ranking_of(study)
    vanilla = report.vanilla
    index = table.numbers.index(vanilla.number)
    assert vanilla.same == (vanilla.number == report.best.trial.number)
    assert vanilla.cost == pytest.approx(table.means[index] - report.best.mean)
    assert vanilla.seed_sd < vanilla.vanilla_seed_sd
    means = np.array([np.nanmean(row) for row in table.vanilla])
    assert means[index] == pytest.approx(np.mean(table.vanilla[index][: table.n_seeds[index]]))
    assert report.final_trainings == 20
    assert sum(report.p_best.values()) == pytest.approx(1.0)
    assert set(report.eliminations) == {
        r.number for r in report.rows if r.eliminated_by is not None
    }


def test_report_of_numbers_has_no_vanilla_choice():
    study = searched(n_trials=4)
    assert report_study(study).vanilla is None
    assert report_study(study).p_best == {}


def test_probability_of_lowest_equals_sampling():
    mean, error = np.array([0.0, 0.3, 1.0]), np.array([0.5, 0.2, 1.0])
    draws = mean + error * np.random.default_rng(0).standard_normal((200_000, 3))
    sampled = np.bincount(draws.argmin(1), minlength=3) / 200_000
    np.testing.assert_allclose(probability_of_lowest(mean, error), sampled, atol=0.004)
    two = probability_of_lowest(mean[:2], error[:2])[0]
    assert two == pytest.approx(stats.norm.cdf(0.3 / np.hypot(0.5, 0.2)), abs=1e-4)


def test_rows_are_in_order():
    rows = finals(searched(), train, budget=12).rows
    for one, other in pairwise([row for row in rows if row.eliminated_by is None]):
        assert one.mean + one.standard_error <= other.mean + other.standard_error
    gone = [row.eliminated_by is not None for row in rows]
    assert gone == sorted(gone)
