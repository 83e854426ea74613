from __future__ import annotations

import pickle
import time

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from trueup.errors import InvalidInputError, StateMismatchError, TrueupWarning
from trueup_optuna import SeedRacePruner
from trueup_optuna.study.trial_state import BY, ELIMINATED, LOG_E, STATUS


def add_configuration(study, values, status=None):
    means = {i: float(np.mean(values[: i + 1])) for i in range(len(values))}
    study.add_trial(
        optuna.create_trial(
            value=float(np.mean(values)),
            intermediate_values=means,
            user_attrs={} if status is None else {STATUS: status},
        )
    )


def reporting(values, reports="running_mean"):
    """A plain objective that returns its mean when it is told to stop."""

    def objective(trial):
        for index in range(len(values)):
            mean = float(np.mean(values[: index + 1]))
            trial.report(mean if reports == "running_mean" else float(values[index]), index)
            if trial.should_prune():
                break
        return mean

    return objective


def populated(direction="minimize", n=12, seeds=6, **arguments):
    study = optuna.create_study(direction=direction, pruner=SeedRacePruner(20, **arguments))
    sign = 1.0 if direction == "minimize" else -1.0
    for values in np.random.default_rng(0).normal(size=(n, seeds)):
        add_configuration(study, sign * values)
    return study, sign


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("variance", ["moderated", "own"])
def test_a_worse_configuration_is_eliminated_and_returns_its_mean(direction, variance):
    study, sign = populated(direction, seeds=10, variance=variance)
    bad = sign * (np.random.default_rng(1).normal(size=10) + 9.0)
    study.optimize(reporting(bad), n_trials=1)
    trial = study.trials[-1]
    assert trial.state == TrialState.COMPLETE
    assert trial.user_attrs[STATUS] == ELIMINATED
    assert 2 <= len(trial.intermediate_values) < 10
    assert trial.user_attrs[BY] < trial.number
    assert trial.user_attrs[LOG_E] >= -np.log(0.05)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_equal_and_a_better_configuration_go_on(direction):
    study, sign = populated(direction)
    for shift in (0.0, -9.0):
        values = sign * (np.random.default_rng(2).normal(size=6) + shift)
        study.optimize(reporting(values), n_trials=1)
        assert STATUS not in study.trials[-1].user_attrs
        assert len(study.trials[-1].intermediate_values) == 6


def test_values_can_be_reported_in_place_of_means():
    by_mean, _ = populated()
    by_value = optuna.create_study(pruner=SeedRacePruner(20, reports="value"))
    for values in np.random.default_rng(0).normal(size=(12, 6)):
        by_value.add_trial(
            optuna.create_trial(value=0.0, intermediate_values=dict(enumerate(values.tolist())))
        )
    bad = np.random.default_rng(1).normal(size=6) + 9.0
    by_mean.optimize(reporting(bad), n_trials=1)
    by_value.optimize(reporting(bad, "value"), n_trials=1)
    one, other = by_mean.trials[-1].user_attrs, by_value.trials[-1].user_attrs
    assert one[BY] == other[BY]
    assert one[LOG_E] == pytest.approx(other[LOG_E], rel=1e-9)


def test_the_first_configurations_cannot_be_eliminated():
    study = optuna.create_study(pruner=SeedRacePruner(20))
    study.optimize(reporting([0.0, 0.1]), n_trials=1)
    study.optimize(reporting([900.0, 901.0]), n_trials=1)
    assert STATUS not in study.trials[1].user_attrs


def test_an_eliminated_configuration_does_not_eliminate():
    study = optuna.create_study(pruner=SeedRacePruner(20))
    for values in np.random.default_rng(0).normal(size=(12, 6)):
        add_configuration(study, values, ELIMINATED)
    study.optimize(reporting(np.random.default_rng(1).normal(size=6) + 9.0), n_trials=1)
    assert STATUS not in study.trials[-1].user_attrs


def test_failed_trials_are_no_comparators():
    study, _ = populated(n=10)
    reference, _ = populated(n=10)

    def fails(trial):
        for index in range(6):
            trial.report(-100.0, index)
        raise ValueError

    study.optimize(fails, n_trials=1, catch=ValueError)
    bad = np.random.default_rng(1).normal(size=6) + 9.0
    study.optimize(reporting(bad), n_trials=1)
    reference.optimize(reporting(bad), n_trials=1)
    assert study.trials[-1].user_attrs[BY] == reference.trials[-1].user_attrs[BY]


def test_trials_beyond_the_plan_are_left_alone_with_one_warning():
    study = optuna.create_study(pruner=SeedRacePruner(12))
    for values in np.random.default_rng(0).normal(size=(12, 6)):
        add_configuration(study, values)
    bad = np.random.default_rng(1).normal(size=6) + 9.0
    with pytest.warns(TrueupWarning, match="trial 12 comes after the 12 configurations") as caught:
        study.optimize(reporting(bad), n_trials=2)
    assert len(caught) == 1
    assert all(STATUS not in trial.user_attrs for trial in study.trials[12:])


def test_an_open_study_needs_no_plan():
    study = optuna.create_study(pruner=SeedRacePruner(None))
    for values in np.random.default_rng(0).normal(size=(12, 8)):
        add_configuration(study, values)
    study.optimize(reporting(np.random.default_rng(1).normal(size=8) + 12.0), n_trials=1)
    assert study.trials[-1].user_attrs[STATUS] == ELIMINATED


def test_indifference_eliminates_earlier():
    lengths = []
    for epsilon in (0.0, 3.0):
        study, _ = populated(epsilon=epsilon)
        study.optimize(reporting(np.random.default_rng(1).normal(size=6) + 0.5), n_trials=1)
        lengths.append(len(study.trials[-1].intermediate_values))
    assert lengths[1] < lengths[0]


def test_a_pruner_survives_pickling_and_serves_several_studies():
    pruner = pickle.loads(pickle.dumps(SeedRacePruner(20, alpha=0.1)))
    assert repr(pruner) == (
        "SeedRacePruner(n_configs=20, alpha=0.1, epsilon=0.0, variance='moderated', "
        "reports='running_mean')"
    )
    for shift in (0.0, 50.0):
        study = optuna.create_study(pruner=pruner)
        for values in np.random.default_rng(0).normal(size=(12, 6)):
            add_configuration(study, values + shift)
        study.optimize(reporting(np.random.default_rng(1).normal(size=6) + shift), n_trials=1)
        assert STATUS not in study.trials[-1].user_attrs


def test_a_study_refuses_another_alpha(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name, pruner=SeedRacePruner(20))
    study.optimize(reporting([0.0, 0.1]), n_trials=1)
    study.pruner = SeedRacePruner(20, alpha=0.2)
    with pytest.raises(StateMismatchError, match=r"alpha must be what the study .* got 0\.2"):
        study.optimize(reporting([0.0, 0.1]), n_trials=1)


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(InvalidInputError, match="study must have a single objective; got 2"):
        SeedRacePruner(20).pin(study)


def test_an_unknown_way_of_reporting_is_refused():
    with pytest.raises(InvalidInputError, match='reports must be "running_mean" or "value"'):
        SeedRacePruner(20, reports="median")


def test_a_decision_at_a_thousand_trials_is_quick():
    study = optuna.create_study(pruner=SeedRacePruner(1200))
    for values in np.random.default_rng(0).normal(size=(1000, 3)):
        add_configuration(study, values)
    trial = study.ask()
    for index, mean in enumerate((0.1, 0.2, 0.1)):
        trial.report(mean, index)
    trial.should_prune()
    seconds = []
    for _ in range(15):
        started = time.thread_time()  # of the processor alone, whoever else waits for it
        trial.should_prune()
        seconds.append(time.thread_time() - started)
    assert min(seconds) < 0.025  # five times the goal, which benchmarks measure on an idle machine
