from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from tests.trueup_optuna.training import result, train, train_maximized

from trueup.errors import InvalidInputError, StateMismatchError
from trueup_optuna import (
    SeedList,
    SeedObjective,
    SeedRacePruner,
    confirm,
    finals,
    open_journal,
)
from trueup_optuna.budget import Spending
from trueup_optuna.shrunken_means import unit_cube
from trueup_optuna.study.ranking import ranking_of
from trueup_optuna.study.trial_state import FAILED, REPEAT_OF, seed_records


def searched(function=train, *, budget=60, direction="minimize", storage=None, **arguments):
    study = optuna.create_study(
        storage=storage,
        direction=direction,
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.NopPruner(),
    )
    objective = SeedObjective(function, seeds=SeedList(8, confirm=2), budget=budget, **arguments)
    study.optimize(objective)  # it stops by itself
    return study


def noisy(noise):
    def training(trial, seed):
        x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        own = np.random.default_rng([seed, int((x + 2.0) * 2**40), int((y + 2.0) * 2**40)])
        return x**2 + y**2 + noise * own.standard_normal()

    return training


def test_search_and_finals_spend_the_budget_together(storage):
    calls = []

    def counted(trial, seed):
        calls.append(seed)
        return train(trial, seed)

    study = searched(counted, budget=24, storage=storage)
    table = finals(study, counted)
    assert table.search_trainings + table.final_trainings == len(calls) == 24
    assert table.final_trainings >= 2
    assert len(confirm(study, counted, n_seeds=2).values) == 2


def test_seeds_that_change_little_leave_nearly_all_to_the_search_and_noise_a_fifth_to_the_finals():
    quiet = finals(searched(noisy(1e-6)), noisy(1e-6))
    loud = finals(searched(noisy(1.0)), noisy(1.0))
    assert quiet.final_trainings <= 4
    assert 12 <= loud.final_trainings <= 18
    assert sum(row.n_seeds > 1 for row in quiet.rows) <= 6


def test_maximizing_mirrors_minimizing():
    down, up = searched(), searched(train_maximized, direction="maximize")
    assert [t.params for t in down.trials] == [t.params for t in up.trials]
    one, other = finals(down, train).rows, finals(up, train_maximized).rows
    assert [row.number for row in one] == [row.number for row in other]
    assert one[0].shrunken_mean == pytest.approx(-other[0].shrunken_mean)


def test_the_sampler_sees_shrunken_means_and_the_trial_keeps_what_it_measured():
    study = searched(noisy(0.3))
    late = study.trials[-1]
    (record,) = seed_records(late.user_attrs)
    measured = noisy(0.3)(optuna.trial.FixedTrial(late.params), record.seed)
    assert late.intermediate_values[0] == record.value == measured
    drawn = [abs(t.value - t.intermediate_values[max(t.intermediate_values)]) for t in study.trials]
    assert max(drawn) > 0.05


def test_a_budget_goes_on_after_an_interrupt_and_may_grow(tmp_path):
    storage = open_journal(tmp_path / "journal.log")
    study = optuna.create_study(storage=storage, pruner=optuna.pruners.NopPruner())
    objective = SeedObjective(train, seeds=SeedList(8), budget=30)
    study.optimize(objective, n_trials=5)
    again = optuna.load_study(
        study_name=study.study_name, storage=storage, pruner=optuna.pruners.NopPruner()
    )
    again.optimize(SeedObjective(train, seeds=SeedList(8), budget=30))
    assert Spending(again).search_is_over
    n = len(again.trials)
    again.optimize(SeedObjective(train, seeds=SeedList(8), budget=30))
    assert [t.state for t in again.trials[n:]] == [TrialState.PRUNED]
    assert finals(again, train).final_trainings == 30 - int(ranking_of(again).n_searched.sum())
    again.optimize(SeedObjective(train, seeds=SeedList(8), budget=60))
    table = finals(again, train)
    assert table.search_trainings + table.final_trainings == 60


def test_a_diverging_configuration_counts_in_the_budget():
    def diverges(trial, seed):
        return (
            float("nan") if trial.number % 3 == 1 else result(trial.suggest_float("x", -1, 1), seed)
        )

    study = searched(diverges, budget=30)
    table = finals(study, diverges)
    lost = len(study.get_trials(states=(TrialState.FAIL,)))
    assert lost > 2
    assert table.search_trainings + table.final_trainings + lost == 30


@pytest.mark.parametrize("sampler", [optuna.samplers.TPESampler, optuna.samplers.RandomSampler])
def test_a_configuration_that_comes_again_gets_its_next_seed(sampler):
    calls = []

    def small(trial, seed):
        x = trial.suggest_int("x", 0, 9)
        calls.append((x, seed))
        return noisy(0.3)(optuna.trial.FixedTrial({"x": x / 10, "y": 0.0}), seed)

    study = optuna.create_study(sampler=sampler(seed=0), pruner=optuna.pruners.NopPruner())
    study.optimize(SeedObjective(small, seeds=SeedList(8), budget=60))
    table = finals(study, small)
    assert len(calls) == 60
    assert len({row.params["x"] for row in table.rows}) == len(table.rows)
    wasted = len(calls) - sum(row.n_seeds for row in table.rows)
    assert wasted <= (4 if sampler is optuna.samplers.TPESampler else 48)
    assert all(len({r.seed for r in row.records}) == row.n_seeds for row in table.rows)


def test_a_trial_that_is_not_trained_keeps_the_parameters_that_were_drawn():
    def small(trial, seed):
        return noisy(0.3)(
            optuna.trial.FixedTrial({"x": trial.suggest_int("x", 0, 2) / 2, "y": 0.0}), seed
        )

    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=2)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.NopPruner())
    study.optimize(SeedObjective(small, seeds=SeedList(4), budget=40))
    pruned = study.get_trials(states=(TrialState.PRUNED,))
    assert len(pruned) > 2
    assert all(trial.params.keys() == {"x"} for trial in pruned)


@pytest.mark.parametrize("race", [False, True])
def test_seeds_take_turns_unless_a_race_compares_under_shared_ones(race):
    pruner = SeedRacePruner(None) if race else optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner)
    study.optimize(SeedObjective(noisy(0.3), seeds=SeedList(8), budget=40))
    firsts = [seed_records(trial.user_attrs)[0].seed for trial in study.trials]
    assert firsts == [0 if race else max(0, n - 5) % 8 for n in range(len(firsts))]
    finals(study, noisy(0.3))
    table = ranking_of(study)
    for trial, records in zip(table.trials, table.records, strict=True):
        number = 0 if race else trial.number
        turned = [(firsts[trial.number] + i) % 8 for i in range(8)]
        early = [0, *((i + number) % 7 + 1 for i in range(7))]  # other seconds than their peers
        expected = turned if number >= 6 else early
        assert [r.seed for r in records] == expected[: len(records)]
    other = optuna.pruners.NopPruner() if race else SeedRacePruner(None)
    study.pruner = other
    with pytest.raises(StateMismatchError, match="must be"):
        study.optimize(SeedObjective(noisy(0.3), seeds=SeedList(8), budget=50))


def test_a_search_ends_where_the_space_has_no_further_seed():
    def tiny(trial, seed):
        x = trial.suggest_int("x", 0, 2)
        return noisy(0.3)(optuna.trial.FixedTrial({"x": x / 10, "y": 0.0}), seed)

    study = searched(tiny, budget=200)
    assert sum(row.n_seeds for row in finals(study, tiny).rows) <= 3 * 8


def test_a_configuration_whose_repeat_failed_is_not_tried_again():
    def fails_late(trial, seed):
        k = trial.suggest_int("k", 1, 3)
        if seed == 2 and k == 2:
            raise ValueError("boom")
        return noisy(0.3)(optuna.trial.FixedTrial({"x": k / 10, "y": 0.0}), seed)

    study = searched(fails_late, budget=40, catch=ValueError)
    failed = [
        t.user_attrs[REPEAT_OF] for t in study.trials if {REPEAT_OF, FAILED} <= {*t.user_attrs}
    ]
    assert len(failed) == 1
    later = [t for t in study.trials if t.user_attrs.get(REPEAT_OF) == failed[0]][-1]
    assert later.state == TrialState.PRUNED


@pytest.mark.parametrize("budget", [9, 2.5, "many", True])
def test_a_budget_is_a_number_of_trainings(budget):
    with pytest.raises(InvalidInputError, match="budget must be an integer of at least 10; got"):
        SeedObjective(train, seeds=SeedList(8), budget=budget)


def test_a_study_keeps_its_way_of_spending():
    study = searched(budget=20)
    with pytest.raises(StateMismatchError, match="budget must be given where the study"):
        study.optimize(SeedObjective(train, seeds=SeedList(8, confirm=2)), n_trials=1)
    plain = optuna.create_study()
    plain.optimize(SeedObjective(train, seeds=SeedList(8)), n_trials=1)
    with pytest.raises(StateMismatchError, match="budget must be left out where the study"):
        plain.optimize(SeedObjective(train, seeds=SeedList(8), budget=20), n_trials=1)


def test_parameters_become_points():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def mixed(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.suggest_float("rate", 1e-4, 1e-2, log=True)
        return trial.suggest_int("width", 10, 20) if kind == "a" else 0.0

    study.enqueue_trial({"kind": "a", "rate": 1e-3, "width": 15})
    study.enqueue_trial({"kind": "b", "rate": 1e-2})
    study.optimize(mixed, n_trials=2)
    half = np.sqrt(0.5)
    expected = [[half, 0.0, 0.5, 0.5], [0.0, half, 1.0, 0.5]]
    np.testing.assert_allclose(unit_cube(tuple(study.trials)), expected)
