from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState
from tests.trueup_optuna.training import result, train

from trueup.errors import TrueupWarning
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, select_best
from trueup_optuna.study.companions import companion


def curve(offset=0.0, factor=1.0):
    """A training whose curve comes down to its result, times a factor."""

    def with_epochs(trial, seed):
        value = 1.0 + result(trial.suggest_float("x", -1.0, 1.0), seed)
        for epoch in range(4):
            trial.report(factor * (value + offset / (1 + epoch)), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    return with_epochs


def searched(function, pruner, n_trials=12, **arguments):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner)
    objective = SeedObjective(function, seeds=SeedList(6), **arguments)
    study.optimize(objective, n_trials=n_trials)
    return study


def test_a_pruner_of_epochs_is_honoured_and_never_one_of_seeds():
    study = searched(curve(0.2), optuna.pruners.MedianPruner(n_startup_trials=2))
    stopped = study.get_trials(states=(TrialState.PRUNED,))
    complete = study.get_trials(states=(TrialState.COMPLETE,))
    assert 0 < len(stopped) < 12
    assert len(stopped) + len(complete) == 12
    for trial in complete:  # all their seeds, since medians over seeds stop nobody
        assert len(trial.intermediate_values) == (3 if trial.number < 5 else 2)
    curves = companion(study, "epochs").trials
    assert sum(trial.state == TrialState.PRUNED for trial in curves) == len(stopped)
    assert all(trial.state.is_finished() for trial in curves)


def test_a_pruner_over_seeds_needs_a_training_without_reports():
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
    )
    study.optimize(SeedObjective(train, seeds=SeedList(6), n_base=4), n_trials=8)
    assert any(len(trial.intermediate_values) < 4 for trial in study.trials)


def test_a_stopped_trial_is_neither_best_nor_optimistic_nor_in_the_finals():
    def promising_start(trial, seed):
        x = trial.suggest_float("x", -1.0, 1.0)
        for epoch in range(3):
            trial.report(-5.0 if trial.number == 8 else 1.0 + epoch / 100, epoch)
            if trial.number == 8:
                raise optuna.TrialPruned
        return 1.0 + result(x, seed)

    study = searched(promising_start, optuna.pruners.NopPruner(), epoch_pruner=None)
    assert study.trials[8].state == TrialState.PRUNED
    assert select_best(study).trial.number != 8
    assert select_best(study).optimistic_value == study.best_value > 0.5
    seen = set()

    def recording(trial, seed):
        seen.add(trial.number)
        return 1.0 + result(trial.params.get("x", trial.suggest_float("x", -1.0, 1.0)), seed)

    table = finals(study, recording, budget=20)
    assert 8 not in seen | {row.number for row in table.rows}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (curve(factor=0.001), "the last report of a training must be on the scale of its result"),
        (curve(factor=-1.0), "the last report of a training must be on the scale of its result"),
        (curve(offset=-0.3), "the reports of 3 trainings in a row end worse than they began"),
    ],
)
def test_reports_on_another_scale_or_in_another_direction_are_named_once(function, message):
    pruner = optuna.pruners.NopPruner()
    with pytest.warns(TrueupWarning, match=message) as told:
        searched(function, SeedRacePruner(20), n_trials=6, epoch_pruner=pruner)
    assert len(told) == 1


def test_good_reports_are_taken_without_a_word():
    pruner = optuna.pruners.MedianPruner()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        searched(curve(0.5), SeedRacePruner(20), n_trials=6, epoch_pruner=pruner)


def test_a_failing_training_leaves_no_curve_that_runs_for_ever():
    def breaks(trial, seed):
        trial.report(1.0, 0)
        raise RuntimeError("no memory")

    study = optuna.create_study()
    objective = SeedObjective(breaks, seeds=SeedList(4))
    study.optimize(objective, n_trials=2, catch=(RuntimeError,))
    states = {trial.state for trial in companion(study, "epochs").trials}
    assert states == {TrialState.FAIL}


def test_a_seed_without_effect_is_named_once():
    def deterministic(trial, seed):
        return trial.suggest_float("x", -1.0, 1.0) ** 2

    with pytest.warns(TrueupWarning, match="train gave the same result under each seed") as told:
        study = searched(deterministic, SeedRacePruner(12), n_trials=6)
    assert len(told) == 1
    table = finals(study, deterministic, budget=6)
    lowest = min(trial.params["x"] ** 2 for trial in study.trials)
    assert table.rows[0].mean == pytest.approx(lowest)
