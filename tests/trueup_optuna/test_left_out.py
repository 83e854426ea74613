"""What has no place in the ranking is told with its reason."""

from __future__ import annotations

import optuna

from trueup_optuna import SeedList, SeedObjective, finals, report_study
from trueup_optuna.study.trial_state import FAILED, REPEAT_OF


def train(trial, seed):
    x = trial.suggest_categorical("x", ["fine", "fails", "infeasible", "stops", "fails late"])
    if x == "fails" or (x == "fails late" and seed == 2):
        raise RuntimeError("out of memory")
    trial.set_constraint("size", 1.0 if x == "infeasible" else -1.0)
    if x == "stops":
        trial.report(9.0, 0)
        raise optuna.TrialPruned
    return 1.0 + 0.1 * seed


def searched():
    study = optuna.create_study(pruner=optuna.pruners.MedianPruner())
    for x in ("fine", "fine", "fails", "infeasible", "stops", "fails late"):
        study.enqueue_trial({"x": x})
    objective = SeedObjective(train, seeds=SeedList(4), n_startup_seeds=2, catch=RuntimeError)
    study.optimize(objective, n_trials=6)
    return study


def test_each_trial_that_is_left_out_says_why():
    found = report_study(searched()).left_out
    assert {number: why.kind for number, why in found.items()} == {
        2: "failed",
        3: "infeasible",
        4: "stopped",
    }
    assert "got RuntimeError: out of memory" in found[2].reason


def test_what_fails_in_the_finals_is_told_too():
    study = searched()
    finals(study, train, budget=4, catch=RuntimeError)
    found = report_study(study).left_out
    assert found[5].kind == "failed"
    assert "the training of seed 2" in found[5].reason


def test_a_repeat_whose_seed_failed_is_no_trial_of_its_own():
    study = optuna.create_study(pruner=optuna.pruners.NopPruner())
    for _ in range(2):
        study.enqueue_trial({"x": "fine"})
    objective = SeedObjective(train, seeds=SeedList(4), catch=RuntimeError, n_startup_seeds=2)
    study.optimize(objective, n_trials=2)
    repeat = optuna.trial.create_trial(
        state=optuna.trial.TrialState.FAIL, user_attrs={REPEAT_OF: 0, FAILED: "out of memory"}
    )
    study.add_trial(repeat)
    assert report_study(study).left_out == {}


def test_a_failed_seed_that_may_be_kept_leaves_the_trial_in_the_race():
    study = optuna.create_study(pruner=optuna.pruners.NopPruner())
    for x in ("fine", "fails late"):
        study.enqueue_trial({"x": x})
    objective = SeedObjective(
        train, seeds=SeedList(4), n_base=3, catch=RuntimeError, on_error="keep"
    )
    study.optimize(objective, n_trials=2)
    assert report_study(study).left_out == {}
