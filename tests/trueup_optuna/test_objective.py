from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from tests.trueup_optuna.training import result, train, train_classifier, train_maximized

from trueup import CrossFit, HoldOut, InSample, evaluate
from trueup.errors import InvalidInputError, StateMismatchError, TrueupWarning
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner
from trueup_optuna.study.trial_state import FAILED, STATUS, STOPPED_IN_EPOCH, seed_records


def objective_of(train=train, **arguments):
    return SeedObjective(train, **{"seeds": SeedList(8), **arguments})


def test_a_trial_keeps_running_means_and_the_result_of_each_seed(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name)
    study.optimize(objective_of(n_base=3), n_trials=2)
    for trial in study.trials:
        values = [result(trial.params["x"], seed) for seed in range(3)]
        records = seed_records(trial.user_attrs)
        assert [record.value for record in records] == values
        assert [record.seed for record in records] == [0, 1, 2]
        means = [float(np.mean(values[: i + 1])) for i in range(3)]
        assert trial.intermediate_values == pytest.approx(dict(enumerate(means)), abs=1e-15)
        assert trial.value == pytest.approx(means[-1], abs=1e-15)


def test_predictions_are_scored_on_the_calibrated_metric_with_the_vanilla_one_beside():
    study = optuna.create_study()
    study.optimize(objective_of(train_classifier, split=HoldOut(0.3)), n_trials=1)
    trial = study.trials[0]
    record = seed_records(trial.user_attrs)[1]
    fixed = optuna.trial.FixedTrial(trial.params)
    expected = evaluate(*train_classifier(fixed, 1), split=HoldOut(0.3))
    assert record.value == expected.calibrated
    assert record.vanilla == expected.vanilla
    assert record.fingerprint == expected.fingerprint
    assert record.split == expected.spec.split


def test_an_evaluation_and_predictions_give_the_same_trial():
    def train_evaluation(trial, seed):
        return evaluate(*train_classifier(trial, seed), split=CrossFit())

    values = []
    for function in (train_classifier, train_evaluation):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(objective_of(function), n_trials=1)
        values.append(study.trials[0].value)
    assert values[0] == values[1]


def test_the_first_five_trials_get_more_seeds():
    study = optuna.create_study()
    study.optimize(objective_of(n_base=1, n_startup_seeds=4), n_trials=7)
    assert [len(trial.intermediate_values) for trial in study.trials] == [4] * 5 + [1] * 2


def test_a_short_list_of_seeds_is_enough():
    study = optuna.create_study()
    study.optimize(objective_of(seeds=[31, 17]), n_trials=1)
    assert [record.seed for record in seed_records(study.trials[0].user_attrs)] == [31, 17]


def test_an_eliminated_trial_is_complete_with_its_mean():
    study = optuna.create_study(
        pruner=SeedRacePruner(40), sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(objective_of(n_base=6), n_trials=40)
    out = [trial for trial in study.trials if trial.user_attrs.get(STATUS)]
    assert len(out) > 5
    for trial in study.trials:
        assert trial.state == TrialState.COMPLETE
        records = seed_records(trial.user_attrs)
        assert trial.value == pytest.approx(np.mean([record.value for record in records]))
    assert all(len(trial.intermediate_values) < 6 for trial in out)


def test_maximizing_mirrors_minimizing():
    trials = []
    for direction, function in (("minimize", train), ("maximize", train_maximized)):
        study = optuna.create_study(
            direction=direction,
            pruner=SeedRacePruner(30),
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
        study.optimize(objective_of(function, n_base=6), n_trials=30)
        trials.append(study.trials)
    for one, other in zip(*trials, strict=True):
        assert one.value == pytest.approx(-other.value)
        assert one.user_attrs.get(STATUS) == other.user_attrs.get(STATUS)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore:.*CmaEsSampler.*:UserWarning")
@pytest.mark.parametrize(
    "sampler",
    [
        lambda: optuna.samplers.RandomSampler(seed=0),
        lambda: optuna.samplers.GridSampler({"x": np.linspace(-1, 1, 15).tolist()}, seed=0),
        lambda: optuna.samplers.TPESampler(seed=0, n_startup_trials=5),
        lambda: optuna.samplers.GPSampler(seed=0, n_startup_trials=5),
        lambda: optuna.samplers.CmaEsSampler(seed=0, n_startup_trials=5),
        lambda: optuna.samplers.NSGAIISampler(seed=0, population_size=5),
    ],
    ids=["random", "grid", "tpe", "gp", "cma-es", "nsga-ii"],
)
def test_every_sampler_works(sampler):
    def train_in_two_dimensions(trial, seed):
        y = 0.0 if "x" in grid else trial.suggest_float("y", -1.0, 1.0)
        return train(trial, seed) + 0.1 * y**2

    made = sampler()
    grid = {"x"} if isinstance(made, optuna.samplers.GridSampler) else set()
    study = optuna.create_study(sampler=made, pruner=SeedRacePruner(15))
    study.optimize(objective_of(train_in_two_dimensions), n_trials=15)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert len(study.trials) == 15


def test_threads_share_a_study():
    study = optuna.create_study(pruner=SeedRacePruner(30))
    study.optimize(objective_of(n_base=4), n_trials=30, n_jobs=2)
    for trial in study.trials:
        values = [record.value for record in seed_records(trial.user_attrs)]
        assert values == [result(trial.params["x"], seed) for seed in range(len(values))]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"seeds": SeedList(9)}, "seeds"),
        ({"seeds": SeedList(8, confirm=4)}, "seeds"),
        ({"loss": "brier_score"}, "metric"),
        ({"split": InSample()}, "split"),
        ({"split": CrossFit(salt=1)}, "split"),
    ],
)
def test_a_study_refuses_to_resume_with_something_else(storage, study_name, arguments, name):
    study = optuna.create_study(storage=storage, study_name=study_name)
    study.optimize(objective_of(train_classifier), n_trials=1)
    again = optuna.load_study(study_name=study_name, storage=storage)
    again.optimize(objective_of(train_classifier), n_trials=1)
    with pytest.raises(StateMismatchError, match=f"{name} must be what the study"):
        again.optimize(objective_of(train_classifier, **arguments), n_trials=1)


def test_a_study_refuses_to_lose_its_pruner():
    study = optuna.create_study(pruner=SeedRacePruner(20))
    study.optimize(objective_of(), n_trials=1)
    study.pruner = optuna.pruners.MedianPruner()
    with pytest.raises(StateMismatchError, match="pruner must be the SeedRacePruner"):
        study.optimize(objective_of(), n_trials=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"alpha": 0.1}, r"alpha must be what the study '.*' was begun with, 0.05; got 0.1"),
        ({"n_configs": 30}, "n_configs must be .*, 20; got 30. Resume with the same n_configs"),
        ({"variance": "own"}, "variance must be .*, 'moderated'; got 'own'"),
    ],
)
def test_a_study_names_the_argument_of_its_race_that_differs(changed, message):
    study = optuna.create_study(pruner=SeedRacePruner(20))
    study.optimize(objective_of(), n_trials=1)
    study.pruner = SeedRacePruner(**{"n_configs": 20, **changed})
    with pytest.raises(StateMismatchError, match=message):
        study.optimize(objective_of(), n_trials=1)


def test_a_loss_is_not_maximized():
    study = optuna.create_study(direction="maximize")
    with pytest.raises(InvalidInputError, match="direction must be 'minimize' for a loss"):
        study.optimize(objective_of(train_classifier), n_trials=1)


def test_other_rows_under_the_same_seed_are_refused():
    def rows_of_the_trial(trial, seed):
        y_true, y_pred = train_classifier(trial, seed)
        n = 300 - 10 * trial.number
        return y_true[:n], y_pred[:n]

    study = optuna.create_study()
    with pytest.raises(StateMismatchError, match="the rows of seed index 0 must be the same"):
        study.optimize(objective_of(rows_of_the_trial), n_trials=2)


def always(value):
    def constant(trial, seed):
        return value

    return constant


def test_a_diverged_training_is_tried_twice_and_then_fails_the_trial():
    calls = []

    def diverges_once(trial, seed):
        calls.append(seed)
        return float("nan") if calls.count(seed) == 1 and seed == 1 else float(seed)

    study = optuna.create_study()
    study.optimize(objective_of(diverges_once, n_startup_seeds=2), n_trials=1)
    assert study.trials[0].value == 0.5
    assert calls == [0, 1, 1]
    study.optimize(objective_of(always(np.inf)), n_trials=2)  # as with plain Optuna, it goes on
    for trial in study.trials[1:]:
        assert trial.state == TrialState.FAIL
        assert "the result of seed 0 must be finite" in trial.user_attrs[FAILED]


@pytest.mark.parametrize("returned", [None, "high", ([0, 1],), [1, 2, 3]])
def test_a_result_of_another_kind_is_refused(returned):
    with pytest.raises(InvalidInputError, match="the result of train must be"):
        optuna.create_study().optimize(objective_of(always(returned)), n_trials=1)


def test_an_evaluation_of_another_loss_is_refused():
    def train_brier(trial, seed):
        return evaluate(*train_classifier(trial, seed), loss="brier_score")

    with pytest.raises(InvalidInputError, match="loss must be that of the Evaluation"):
        optuna.create_study().optimize(objective_of(train_brier), n_trials=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_base": 0}, "n_base must be an integer of at least 1; got 0. A trial needs a seed"),
        ({"n_base": 2.5}, "n_base must be an integer of at least 1; got 2.5"),
        ({"n_base": "2"}, "n_base must be an integer of at least 1; got '2'"),
        ({"n_base": True}, "n_base must be an integer of at least 1; got True"),
        ({"n_startup_seeds": 0}, "n_startup_seeds must be an integer of at least 1; got 0"),
        ({"n_startup_seeds": None}, "n_startup_seeds must be an integer of at least 1; got None"),
        ({"split": "cv"}, "split must be a Split; got 'cv'. Pass CrossFit"),
        ({"heartbeat": "30"}, "heartbeat must be above 0 and below grace; got heartbeat '30'"),
        ({"grace": None}, "heartbeat must be above 0 .* and grace None. Give seconds"),
        ({"n_base": 9}, "n_base must be at most the number of search seeds, 8; got 9"),
        ({"train": 3}, "train must be callable; got 3"),
        ({"loss": "auc"}, "loss must be one of"),
        ({"seeds": 20}, "seeds must be a SeedList or a sequence of integers; got 20"),
        ({"seeds": "ab"}, "seeds must be a SeedList or a sequence of integers; got 'ab'"),
        ({"seeds": [1.5, 2.5]}, "seeds must be a SeedList or a sequence of integers"),
        ({"grace": 0.0}, "heartbeat must be above 0 and below grace; got heartbeat 30.0 and"),
        ({"heartbeat": -1.0}, "heartbeat must be above 0 and below grace; got heartbeat -1.0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        objective_of(**arguments)


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(InvalidInputError, match="study must have a single objective; got 2"):
        study.optimize(objective_of(), n_trials=1)


def with_epochs(trial, seed):
    x = trial.suggest_float("x", -1.0, 1.0)
    for epoch in range(5):
        trial.report(1.0 + abs(x) + 1.0 / (1 + epoch), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return 1.0 + result(x, seed)


def test_reports_of_epochs_that_no_pruner_reads_are_named_once():
    study = optuna.create_study(pruner=SeedRacePruner(20))
    with pytest.warns(TrueupWarning, match="train reports epochs, and nothing reads them") as told:
        study.optimize(objective_of(with_epochs), n_trials=3)
    assert len(told) == 1
    assert all(len(trial.intermediate_values) == 3 for trial in study.trials)


def test_an_epoch_pruner_stops_in_the_first_seed_only_and_stays_out_of_the_race(
    storage, study_name
):
    study = optuna.create_study(
        storage=storage,
        study_name=study_name,
        pruner=SeedRacePruner(20),
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    pruner = optuna.pruners.MedianPruner(n_startup_trials=2)
    study.optimize(objective_of(with_epochs, epoch_pruner=pruner), n_trials=8)
    stopped = [t for t in study.trials if t.user_attrs.get(STATUS) == STOPPED_IN_EPOCH]
    assert 0 < len(stopped) < 8
    for trial in stopped:
        assert (trial.state, trial.value) == (TrialState.PRUNED, None)
        assert trial.intermediate_values == {}


def test_hyperband_may_prune_epochs():
    study = optuna.create_study(pruner=SeedRacePruner(20))
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=5)
    study.optimize(objective_of(with_epochs, epoch_pruner=pruner), n_trials=8)
    assert len(study.trials) == 8
