"""What a deleted study or a copy leaves beside a study never enters it."""

from __future__ import annotations

import optuna
import pytest
from tests.trueup_optuna.training import result, train

from trueup.errors import TrueupWarning
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, confirm, finals, select_best
from trueup_optuna.study.ranking import ranking_of


def tuned(storage, name, function=train, seed=0):
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=optuna.samplers.RandomSampler(seed=seed),
        pruner=SeedRacePruner(4),
    )
    study.optimize(SeedObjective(function, seeds=SeedList(8, confirm=3)), n_trials=4)
    finals(study, function, budget=4)
    return study


@pytest.mark.filterwarnings("ignore:.*belongs to a study that was deleted:UserWarning")
def test_what_a_deleted_namesake_left_is_ignored(storage, study_name):
    old = tuned(storage, study_name, lambda trial, seed: train(trial, seed) - 100.0)
    confirm(old, lambda trial, seed: train(trial, seed) - 100.0, n_seeds=3)
    optuna.delete_study(study_name=study_name, storage=storage)
    study = tuned(storage, study_name, seed=1)
    table = ranking_of(study)
    for trial, n, records in zip(table.trials, table.n_seeds, table.records, strict=True):
        assert [r.value for r in records] == [result(trial.params["x"], s) for s in range(n)]
    best = select_best(study)
    assert best.mean > -1.0
    confirmed = confirm(study, train, n_seeds=3)
    assert confirmed.values == tuple(result(best.trial.params["x"], s) for s in (8, 9, 10))
    again = optuna.load_study(study_name=study_name, storage=storage)
    assert finals(again, train, budget=4) == finals(study, train, budget=4)


def test_a_deleted_namesake_is_named_once():
    storage = optuna.storages.InMemoryStorage()
    tuned(storage, "s")
    optuna.delete_study(study_name="s", storage=storage)
    with pytest.warns(TrueupWarning, match=r"delete_study\(study_name='s::finals'"):
        study = tuned(storage, "s", seed=1)
    finals(study, train, budget=6)  # without another word


def test_a_copy_says_that_its_companions_were_left_behind_and_takes_them_when_copied():
    storage = optuna.storages.InMemoryStorage()
    study = tuned(storage, "s")
    optuna.copy_study(
        from_study_name="s", from_storage=storage, to_storage=storage, to_study_name="t"
    )
    copied = optuna.load_study(study_name="t", storage=storage)
    with pytest.warns(TrueupWarning, match="'t' had its finals in 's::finals'.*copy_study"):
        assert ranking_of(copied).n_seeds.sum() < ranking_of(study).n_seeds.sum()
    elsewhere = optuna.storages.InMemoryStorage()
    for name in ("s", "s::finals"):
        optuna.copy_study(from_study_name=name, from_storage=storage, to_storage=elsewhere)
    moved = optuna.load_study(study_name="s", storage=elsewhere)
    assert select_best(moved).mean == select_best(study).mean
    assert ranking_of(moved).n_seeds.tolist() == ranking_of(study).n_seeds.tolist()
