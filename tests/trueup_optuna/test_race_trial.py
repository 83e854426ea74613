"""What people's trainings do with their trial works in finals and confirmation as in the search."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from tests.trueup_optuna.training import train

from trueup.errors import TrueupWarning, UndefinedMetricError
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, confirm, finals, select_best
from trueup_optuna.study.companions import companion
from trueup_optuna.study.ranking import CONFIG, ranking_of
from trueup_optuna.study.selection import MEAN, N_SEEDS, SELECTED
from trueup_optuna.study.trial_state import FAILED


def searched(function=train, *, n_trials=10, storage=None, **arguments):
    study = optuna.create_study(
        storage=storage,
        sampler=optuna.samplers.RandomSampler(seed=1),
        pruner=SeedRacePruner(n_trials),
    )
    objective = SeedObjective(function, seeds=SeedList(8, confirm=3), **arguments)
    study.optimize(objective, n_trials=n_trials)
    return study


@pytest.mark.filterwarnings("ignore:train reports epochs:UserWarning")
def test_the_pruning_callback_of_lightgbm_works_to_the_end():
    lightgbm = pytest.importorskip("lightgbm")
    integration = pytest.importorskip("optuna_integration.lightgbm")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(float)

    def boosted(trial, seed):
        params = {
            "objective": "binary",
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.5),
            "bagging_freq": 1,
            "bagging_fraction": 0.5,
            "num_leaves": 4,
            "seed": seed,
            "verbosity": -1,
            "num_threads": 1,
        }
        data = lightgbm.Dataset(x[:100], y[:100])
        held_out = lightgbm.Dataset(x[100:], y[100:], reference=data)
        callback = integration.LightGBMPruningCallback(trial, "binary_logloss")
        model = lightgbm.train(params, data, 5, [held_out], callbacks=[callback])
        return y[100:], model.predict(x[100:])

    study = searched(boosted, n_trials=4)
    assert finals(study, boosted, budget=6).final_trainings == 6
    assert confirm(study, boosted, n_seeds=3).n == 3


def test_study_number_and_attributes_are_those_of_the_search():
    met = []

    def remembering(trial, seed):
        met.append((trial.study.study_name, trial.number, dict(trial.user_attrs)))
        if "drawn" not in trial.user_attrs:
            trial.set_user_attr("drawn", trial.number)
        trial.set_user_attr("seed", seed)
        return train(trial, seed)

    study = searched(remembering)
    met.clear()
    finals(study, remembering, budget=6)
    race = [t for t in companion(study, "finals").trials if t.state == TrialState.COMPLETE]
    assert [number for _, number, _ in met] == [trial.user_attrs[CONFIG] for trial in race]
    assert all(trial.user_attrs["seed"] in range(8) for trial in race)
    best = select_best(study).trial
    met.clear()
    confirm(study, remembering, n_seeds=3)
    assert {name for name, _, _ in met} == {study.study_name}
    assert [number for _, number, _ in met[:3]] == [best.number] * 3
    assert all(attributes["drawn"] == number for _, number, attributes in met)
    kept = companion(study, "confirm").trials
    assert {trial.user_attrs["seed"] for trial in kept} == {8, 9, 10}


@pytest.mark.parametrize("how", ["in train", "in the sampler"])
def test_infeasible_configurations_are_neither_selected_nor_raced(how):
    def constrained(trial, seed):
        x = trial.suggest_float("x", -1.0, 1.0)
        if how == "in train":
            trial.set_constraint("near", 0.4 - abs(x))  # the best ones are forbidden
        trial.set_user_attr("near", 0.4 - abs(x))
        met.add(trial.number)
        return train(trial, seed)

    met = set()
    if how == "in train":
        sampler = optuna.samplers.RandomSampler(seed=1)
    else:
        with pytest.warns(FutureWarning, match="constraints_func"):
            sampler = optuna.samplers.TPESampler(
                seed=1, constraints_func=lambda trial: (trial.user_attrs["near"],)
            )
    study = optuna.create_study(sampler=sampler, pruner=SeedRacePruner(16))
    study.optimize(SeedObjective(constrained, seeds=SeedList(8, confirm=3)), n_trials=16)
    forbidden = {t.number for t in study.trials if abs(t.params["x"]) < 0.4}
    assert forbidden
    met.clear()
    table = finals(study, constrained, budget=12)
    assert not met & forbidden
    assert abs(select_best(study).trial.params["x"]) >= 0.4
    assert table.selected not in forbidden
    assert confirm(study, constrained, n_seeds=3).rival is not None
    assert not {out.by for out in ranking_of(study).eliminations.values()} & forbidden


def test_a_constraint_keeps_the_worst_value_over_the_seeds():
    def sometimes(trial, seed):
        trial.set_constraint("memory", 1.0 if trial.number == 2 and seed == 1 else -1.0)
        return train(trial, seed)

    study = searched(sometimes, n_trials=4)
    assert [trial.constraints["memory"] for trial in study.trials] == [-1.0, -1.0, 1.0, -1.0]

    def later(trial, seed):
        trial.set_constraint("memory", 1.0 if seed > 3 else -1.0)
        return train(trial, seed)

    finals(study, later, budget=30)
    table = ranking_of(study)
    far = table.n_seeds > 4  # those have met a seed that breaks it
    assert far.any()
    assert not (table.contenders & far).any()


def test_without_a_feasible_configuration_the_constraints_are_named():
    def never(trial, seed):
        trial.set_constraint("c", 1.0)
        return train(trial, seed)

    with pytest.raises(UndefinedMetricError, match="satisfies its constraints; got 4 that break"):
        select_best(searched(never, n_trials=4))


def breaks_where(condition, how=float):
    def training(trial, seed):
        value = train(trial, seed)
        if condition(trial, seed):
            if how is float:
                return float("nan")
            raise how("no memory")
        return value

    return training


def test_nan_fails_the_trial_and_the_search_goes_on():
    diverges = breaks_where(lambda trial, seed: trial.number in (1, 3) and seed == 1)
    study = searched(diverges)
    failed = study.get_trials(states=(TrialState.FAIL,))
    assert [trial.number for trial in failed] == [1, 3]
    assert all("seed 1 must be finite" in trial.user_attrs[FAILED] for trial in failed)
    assert select_best(study).trial.number not in (1, 3)


def test_predictions_that_are_nan_are_a_failed_seed():
    def diverged(trial, seed):
        trial.suggest_float("x", 0.0, 1.0)
        return np.array([0, 1, 0, 1]), np.array([0.5, np.nan, 0.1, 0.2])

    study = searched(diverged, n_trials=2)
    assert {trial.state for trial in study.trials} == {TrialState.FAIL}


@pytest.mark.parametrize(("on_error", "survives"), [("drop", False), ("keep", True)])
@pytest.mark.parametrize("how", [float, RuntimeError])
def test_a_failed_seed_of_the_finals_blocks_nobody(how, on_error, survives):
    study = searched()
    before = select_best(study).trial.number
    broken = breaks_where(lambda trial, _: trial.number == before, how)
    table = finals(study, broken, budget=10, catch=RuntimeError, on_error=on_error)
    assert table.final_trainings == 10
    at = ranking_of(study).numbers.index(before)
    assert bool(ranking_of(study).contenders[at]) == survives
    assert ranking_of(study).n_seeds[at] == len(study.trials[before].intermediate_values)
    assert finals(study, broken, budget=12, catch=RuntimeError).final_trainings == 12
    assert (table.selected == before) <= survives


def test_a_search_catches_what_it_is_told_to():
    broken = breaks_where(lambda trial, seed: trial.number == 1 and seed == 1, RuntimeError)
    dropped = searched(broken, catch=(RuntimeError,), n_trials=3)
    assert dropped.trials[1].state == TrialState.FAIL
    kept = searched(broken, catch=RuntimeError, on_error="keep", n_trials=3)
    assert kept.trials[1].value == kept.trials[1].intermediate_values[0]
    with pytest.raises(RuntimeError, match="no memory"):
        searched(broken, n_trials=3)


def test_a_confirmation_leaves_failed_seeds_out_and_says_so():
    study = searched()
    broken = breaks_where(lambda _, seed: seed == 9, RuntimeError)
    with pytest.raises(RuntimeError, match="no memory"):
        confirm(study, broken, n_seeds=3)
    with pytest.warns(TrueupWarning, match=r"trainings under the seeds \(9,\) failed"):
        confirmed = confirm(study, broken, n_seeds=3, catch=RuntimeError)
    assert (confirmed.n, confirmed.failed, len(confirmed.rival_values)) == (2, (9,), 2)
    everything = breaks_where(lambda *_: True)
    with pytest.raises(UndefinedMetricError, match="at least two of the seeds"):
        confirm(searched(), everything, n_seeds=3)


def test_the_selection_is_written_back(storage):
    study = searched(storage=storage, n_trials=4)
    best_of_optuna = study.best_trial.number
    table = finals(study, train, budget=4)
    again = optuna.load_study(study_name=study.study_name, storage=storage)
    for one in (study, again):
        assert one.user_attrs[SELECTED]["number"] == table.selected
        assert one.best_trial.number == best_of_optuna
        assert len(one.trials) == 4
        if isinstance(storage, optuna.storages.JournalStorage):  # it keeps finished trials as is
            continue
        frame = one.trials_dataframe()
        chosen = frame[frame[f"user_attrs_{SELECTED}"].eq(True)]
        assert chosen["number"].tolist() == [table.selected]
        row = table.rows[0]
        assert chosen[f"user_attrs_{MEAN}"].tolist() == [row.mean]
        assert chosen[f"user_attrs_{N_SEEDS}"].tolist() == [row.n_seeds]
    finals(study, train, budget=7)
    flags = [trial.user_attrs.get(SELECTED) for trial in study.trials]
    assert isinstance(storage, optuna.storages.JournalStorage) or flags.count(True) == 1


def test_a_race_table_becomes_a_data_frame():
    table = finals(searched(), train, budget=6)
    frame = table.to_pandas()
    assert frame["number"].tolist() == [row.number for row in table.rows]
    assert frame["params_x"].tolist() == [row.params["x"] for row in table.rows]
    assert frame["selected"].tolist().index(True) == 0
    assert frame["mean"].tolist() == [row.mean for row in table.rows]
