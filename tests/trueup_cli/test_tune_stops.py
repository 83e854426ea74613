"""A signal at any point of a study leaves what resumes at once, and nothing twice."""

from __future__ import annotations

import signal
from itertools import count
from uuid import uuid4

import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from tests.trueup_cli.stops import Stop, stop_study
from tests.trueup_cli.tune_script import arguments, invoke, waits_for_nobody

from trueup.errors import InvalidInputError
from trueup_cli.tune import storage as tune_storage
from trueup_cli.tune.storage import load_study
from trueup_optuna.study.ranking import CONFIG, SEED_INDEX
from trueup_optuna.study.trial_state import configurations, seed_records

SEARCH = [
    ("before create_new_trial", 2),
    ("after create_new_trial", 2),
    ("before_trial", 2),
    ("before objective", 2),
    ("sample", 3),
    ("after set_trial_user_attr", 4),
    ("after set_trial_intermediate_value", 4),
    ("after objective", 2),
    ("after_trial", 2),
    ("before set_trial_state_values", 2),
    ("after set_trial_state_values", 2),
]
FINALS = [
    ("before create_new_trial", 7),
    ("after create_new_trial", 7),
    ("after set_trial_user_attr", 16),
    ("before set_trial_state_values", 7),
    ("after set_trial_state_values", 7),
]
QUEUED_AGAIN = [
    ("before create_new_trial", 1),
    ("after create_new_trial", 1),
    ("before set_trial_state_values", 1),
    ("after set_trial_state_values", 1),
    ("before_trial", 1),
    ("before objective", 1),
]


GAPS = [  # between a training and what makes its trial somebody's
    ("after create_new_trial", 2),
    ("before_trial", 2),
    ("before objective", 2),
    ("after objective", 2),
    ("before set_trial_state_values", 2),
    ("after create_new_trial", 7),
    ("before set_trial_state_values", 7),
]
GAPS_QUEUED_AGAIN = [("after set_trial_state_values", 1), ("before objective", 1)]
RANDOM = ["--sampler", "random", "--sampler-seed", "3"]
JOURNAL = pytest.mark.parametrize("where", ["journal"], indirect=True)
DATABASES = pytest.mark.parametrize(
    "where", ["sqlite", pytest.param("postgresql", marks=pytest.mark.services)], indirect=True
)


@pytest.fixture
def where(request, folder, monkeypatch):
    """The options that name a storage and a study; databases are closed after the test."""
    opened = []

    def open_database(url):
        known = {"skip_compatibility_check": bool(opened), "skip_table_creation": bool(opened)}
        opened.append(RDBStorage(url, **known))
        return opened[-1]

    monkeypatch.setattr(tune_storage, "_open_database", open_database)
    url = {"journal": "trueup-study.journal", "sqlite": "sqlite:///study.db"}.get(request.param)
    url = request.getfixturevalue("postgresql_url") if url is None else url
    yield ["--storage", url, "--study-name", f"stops-{uuid4().hex[:8]}", *RANDOM]
    for database in opened:
        database.engine.dispose()


def stopped(where, stop, *more):
    """Run a study until the signal stops it."""
    with pytest.MonkeyPatch.context() as patch:
        stop_study(patch, stop)
        result = invoke(*arguments(*where, *more))
    assert stop.happened, stop.passed
    assert result.exit_code == 128 + stop.number, result.output
    assert "Go on with --resume" in result.output


def check_resumes_at_once(where):
    _, storage, _, name, *_ = where
    assert waits_for_nobody(storage, name)
    assert not running_finals(storage, name)
    result = invoke(*arguments(*where, "--resume"))
    assert result.exit_code == 0, result.output
    assert "6 configurations" in result.output
    check_nothing_is_there_twice(storage, name)


def running_finals(storage, name):
    try:
        finals = load_study(storage, f"{name}::finals")
    except InvalidInputError:
        return []
    return finals.get_trials(states=(TrialState.RUNNING,))


def check_nothing_is_there_twice(storage, name):
    study = load_study(storage, name)
    assert not study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))
    finished = study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
    assert len({trial.params["x"] for trial in finished}) == len(finished) == 6
    assert [trial.number for trial in configurations(study.trials)] == [t.number for t in finished]
    assert all(len(seed_records(trial.user_attrs)) in (2, 3) for trial in finished)
    finals = load_study(storage, f"{name}::finals")
    done = finals.get_trials(states=(TrialState.COMPLETE,))
    keys = [(trial.user_attrs[CONFIG], trial.user_attrs[SEED_INDEX]) for trial in done]
    assert 1 <= len(set(keys)) == len(keys) <= 5


@JOURNAL
@pytest.mark.parametrize(("point", "nth"), SEARCH + FINALS)
def test_a_signal_around_a_training_waits_until_the_trial_is_marked(where, point, nth):
    stopped(where, Stop(point, nth))
    check_resumes_at_once(where)


@DATABASES
@pytest.mark.parametrize(("point", "nth"), GAPS)
def test_a_signal_in_a_gap_waits_on_a_database_as_well(where, point, nth):
    stopped(where, Stop(point, nth, signal.SIGTERM))
    check_resumes_at_once(where)


@JOURNAL
@pytest.mark.parametrize(("point", "nth"), QUEUED_AGAIN)
def test_a_signal_while_a_trial_is_queued_again(where, point, nth):
    stopped(where, Stop("sample", 3))
    stopped(where, Stop(point, nth, signal.SIGTERM), "--resume")
    check_resumes_at_once(where)


@DATABASES
@pytest.mark.parametrize(("point", "nth"), GAPS_QUEUED_AGAIN)
def test_a_signal_while_a_database_queues_a_trial_again(where, point, nth):
    stopped(where, Stop("sample", 3))
    stopped(where, Stop(point, nth), "--resume")
    check_resumes_at_once(where)


@pytest.mark.parametrize("point", ["before a write", "after a write"])
def test_a_signal_at_any_write_of_a_small_study(folder, point):
    """The same without a choice of points: at each write in a journal, one after another."""
    small = ["my_script.py:train", "--space", "space.yaml", "--trials", "2", "--seeds", "4"]
    for nth in count(1):
        storage, stop = f"{nth}.journal", Stop(point, nth)
        given = [*small, "--finals", "2", "--confirm", "0", "--storage", storage, *RANDOM]
        with pytest.MonkeyPatch.context() as patch:
            stop_study(patch, stop)
            first = invoke(*given)
        if not stop.happened:
            break
        assert first.exit_code == 130, (nth, first.output)
        assert waits_for_nobody(storage), nth
        assert not running_finals(storage, "trueup"), nth
        result = invoke(*given, "--resume")
        assert "2 configurations" in result.output, (nth, result.output)
    assert nth > 30  # writes: two trials of three seeds and the finals
