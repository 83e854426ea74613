from __future__ import annotations

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

import trueup_optuna
from trueup.errors import InvalidInputError
from trueup_optuna import SeedList
from trueup_optuna.study.trial_state import (
    RETRY_OF,
    SeedRecord,
    configurations,
    finished_values,
    seed_key,
    seed_records,
)


@given(st.lists(st.floats(-1e3, 1e3), max_size=20))
def test_differencing_running_means_gives_the_values_back(values):
    means = {index: float(np.mean(values[: index + 1])) for index in range(len(values))}
    np.testing.assert_allclose(finished_values(means), values, atol=1e-9)


def test_only_the_prefix_of_finished_seeds_counts():
    assert finished_values({0: 1.0, 2: 3.0}).tolist() == [1.0]
    assert finished_values({1: 1.0}).tolist() == []
    assert finished_values({0: 1.0, 1: float("nan"), 2: 3.0}).tolist() == [1.0]
    assert finished_values({0: 1.0, 1: 7.0}, "value").tolist() == [1.0, 7.0]


def test_records_survive_the_storage():
    record = SeedRecord(0.25, 7, 0.5, "CrossFit(folds=5, salt=0)", "ab12")
    kept = {seed_key(0): record.to_attribute(), seed_key(2): record.to_attribute()}
    assert seed_records(kept) == (record,)


def trial_of(study, state, *, root=None, steps=None):
    value = 0.5 if state == TrialState.COMPLETE else None
    attributes = {} if root is None else {RETRY_OF: root}
    study.add_trial(
        create_trial(state=state, value=value, user_attrs=attributes, intermediate_values=steps)
    )


def test_a_retried_trial_keeps_the_place_of_its_first_attempt():
    study = optuna.create_study()
    trial_of(study, TrialState.FAIL, steps={0: 1.0})
    trial_of(study, TrialState.COMPLETE)
    trial_of(study, TrialState.COMPLETE, root=0)
    assert [trial.number for trial in configurations(study.trials)] == [2, 1]


def test_failed_trials_keep_a_place_only_with_a_finished_seed():
    study = optuna.create_study()
    trial_of(study, TrialState.FAIL)
    trial_of(study, TrialState.FAIL, steps={0: 1.0})
    trial_of(study, TrialState.WAITING)
    trial_of(study, TrialState.COMPLETE)
    assert [trial.number for trial in configurations(study.trials)] == [1, 3]


def test_seed_list_reserves_seeds_that_the_search_cannot_draw():
    seeds = SeedList(20, confirm=5)
    assert seeds.search == tuple(range(20))
    assert seeds.reserved == (20, 21, 22, 23, 24)
    assert not set(seeds.search) & set(seeds.reserved)


def test_a_plain_list_reserves_nothing():
    seeds = SeedList.of([11, 5, 7])
    assert (seeds.search, seeds.reserved) == ((11, 5, 7), ())
    assert SeedList.of(seeds) is seeds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"n must be an integer of at least 1; got 0\."),
        ({"n": True}, r"n must be an integer of at least 1; got True\."),
        ({"n": 3, "confirm": -1}, r"confirm must be an integer of at least 0; got -1\."),
        (
            {"n": 2, "confirm": 0, "values": (1,)},
            r"values must hold n \+ confirm = 2 seeds; got 1\.",
        ),
        (
            {"n": 2, "confirm": 0, "values": (1, 1)},
            r"values must be different seeds; got \(1, 1\)\.",
        ),
    ],
)
def test_bad_seed_lists_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        SeedList(**arguments)


def test_every_public_name_is_found():
    for name in trueup_optuna.__all__:
        assert hasattr(trueup_optuna, name)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        trueup_optuna.missing  # noqa: B018
