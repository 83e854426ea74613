from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from tests.forked import PROCESSES
from tests.trueup_optuna.crash_worker import N_FINALS, open_study, work
from tests.trueup_optuna.grace import let_grace_pass
from tests.trueup_optuna.training import result, train

from trueup.errors import TrueupWarning
from trueup_optuna import (
    SeedList,
    SeedObjective,
    SeedRacePruner,
    finals,
    open_journal,
    recover_stale,
)
from trueup_optuna.runtime.heartbeat import fail_stale, queue_again
from trueup_optuna.study.ranking import CONFIG, SEED_INDEX, ranking_of
from trueup_optuna.study.trial_state import (
    BEAT,
    RETRY_OF,
    SeedRecord,
    configurations,
    root_number,
    seed_key,
    seed_records,
)


def start(folder, job):
    arguments = (str(folder / "journal.log"), str(folder / "log"), job)
    worker = PROCESSES.Process(target=work, args=arguments)
    worker.start()
    return worker


def run_to_the_end(folder, job):
    worker = start(folder, job)
    worker.join(300)
    assert worker.exitcode == 0


def kill_workers(folder, job, seconds):
    """Start two workers, wait until they train, and kill both after a random time."""
    before = trainings(folder).total()
    workers = [start(folder, job) for _ in range(2)]
    wait_until(lambda: trainings(folder).total() > before or not any(w.is_alive() for w in workers))
    time.sleep(seconds)
    for worker in workers:
        worker.kill()
        worker.join()


def as_another_worker(tmp_path, name):
    return optuna.load_study(study_name=name, storage=open_journal(tmp_path / "journal.log"))


def wait_until(condition, patience=120.0):
    """Return once a condition holds, however busy the machine is."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.02)


def trainings(folder):
    log = folder / "log"
    return Counter(log.read_text().splitlines() if log.exists() else [])


def test_kill_9_loses_at_most_the_seed_in_flight_and_doubles_nothing(tmp_path):
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(3):
        kill_workers(tmp_path, "search", rng.uniform(0.05, 0.4))
        kills += 2
    let_grace_pass(as_another_worker(tmp_path, "crash"))
    run_to_the_end(tmp_path, "search")
    study = open_study(str(tmp_path / "journal.log"))
    standing = configurations(study.trials)
    assert all(trial.state == TrialState.COMPLETE for trial in standing)
    assert len({root_number(trial) for trial in standing}) == len(standing)
    recorded = 0
    for trial in standing:
        records = seed_records(trial.user_attrs)
        recorded += len(records)
        values = [result(trial.params["x"], record.seed) for record in records]
        assert [record.value for record in records] == values
        assert sorted(trial.intermediate_values) == list(range(len(records)))
    started = trainings(tmp_path)
    assert recorded <= started.total() <= recorded + kills
    assert len({trial.params["x"] for trial in standing}) == len(standing)


def test_kill_9_in_the_finals_doubles_nothing(tmp_path):
    run_to_the_end(tmp_path, "search")
    before = trainings(tmp_path).total()
    kill_workers(tmp_path, "finals", 0.1)
    let_grace_pass(as_another_worker(tmp_path, "crash::finals"))
    run_to_the_end(tmp_path, "finals")
    study = open_study(str(tmp_path / "journal.log"))
    race = optuna.load_study(study_name="crash::finals", storage=study._storage)
    done = [trial for trial in race.trials if trial.state == TrialState.COMPLETE]
    keys = {(trial.user_attrs[CONFIG], trial.user_attrs[SEED_INDEX]) for trial in done}
    assert len(keys) == len(done)
    table = ranking_of(study)
    over = table.contenders.sum() == 1 or (table.n_seeds[table.contenders] == 8).all()
    assert len(done) == N_FINALS or over
    assert len(done) <= trainings(tmp_path).total() - before <= len(done) + 2
    assert not race.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))


def dead_trial(study, *, reported, recorded, beat):
    """A running trial whose worker died after it had recorded some seeds and reported fewer."""
    trial = study.ask()
    x = trial.suggest_float("x", -1.0, 1.0)
    values = [result(x, seed) for seed in range(recorded)]
    for index, value in enumerate(values):
        trial.set_user_attr(seed_key(index), SeedRecord(value, index).to_attribute())
    for index in range(reported):
        trial.report(float(np.mean(values[: index + 1])), index)
    trial.set_user_attr(BEAT, beat)
    return trial.number, x


def test_a_stale_trial_is_run_again_with_its_finished_seeds(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name, pruner=SeedRacePruner(20))
    number, x = dead_trial(study, reported=1, recorded=2, beat=time.time() - 500.0)
    assert recover_stale(study) == (number,)
    assert recover_stale(study) == ()
    seeds = []

    def recording(trial, seed):
        seeds.append(seed)
        return train(trial, seed)

    study.optimize(SeedObjective(recording, seeds=SeedList(8), n_base=4), n_trials=1)
    trial = study.trials[-1]
    assert seeds == [2, 3]
    assert trial.params == {"x": x}
    assert trial.user_attrs[RETRY_OF] == number
    assert sorted(trial.intermediate_values) == [0, 1, 2, 3]
    assert trial.value == pytest.approx(np.mean([result(x, seed) for seed in range(4)]))
    assert study.trials[number].state == TrialState.FAIL
    assert [t.number for t in configurations(study.trials)] == [trial.number]


def test_a_retry_that_dies_as_well_is_queued_once(storage, study_name, monkeypatch):
    study = optuna.create_study(storage=storage, study_name=study_name)
    number, x = dead_trial(study, reported=1, recorded=1, beat=0.0)
    for hour in range(1, 4):
        # What an earlier recovery left behind is old by now.
        now = 3600.0 * hour
        monkeypatch.setattr(
            "trueup_optuna.runtime.heartbeat.time", SimpleNamespace(time=lambda t=now: t)
        )
        dead = study.trials[-1]
        assert recover_stale(study) == (dead.number,)
        assert len(study.get_trials(states=(TrialState.WAITING,))) == 1
        retry = study.ask()
        assert retry.number == dead.number + 1
        retry.set_user_attr(BEAT, now)
    assert study.trials[-1].user_attrs[RETRY_OF] == number
    assert study.trials[-1].params == {"x": x}


def test_workers_that_recover_at_once_queue_a_trial_once(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name)
    dead_trial(study, reported=1, recorded=1, beat=0.0)
    dead = fail_stale(study)[0]
    assert [queue_again(study, dead) for _ in range(2)] == [True, False]
    assert len(study.get_trials(states=(TrialState.WAITING,))) == 1


def test_a_beating_trial_is_left_alone(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name)
    dead_trial(study, reported=1, recorded=1, beat=time.time() - 60.0)
    assert recover_stale(study) == ()
    assert study.trials[0].state == TrialState.RUNNING


@pytest.mark.parametrize(
    "storage",
    ["journal", "sqlite", pytest.param("postgresql", marks=pytest.mark.services)],
    indirect=True,
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_trial_resumes_at_once(storage, study_name, stop):
    study = optuna.create_study(storage=storage, study_name=study_name)
    seeds = []

    def interrupted(trial, seed):
        seeds.append(seed)
        if len(seeds) == 3:
            raise stop
        return train(trial, seed)

    objective = SeedObjective(interrupted, seeds=SeedList(8), n_base=4)
    with pytest.raises(stop):
        study.optimize(objective, n_trials=1)
    assert recover_stale(study) == (0,)
    study.optimize(objective, n_trials=1)
    assert seeds == [0, 1, 2, 2, 3]
    assert study.trials[1].params == study.trials[0].params


def test_an_interrupt_between_two_seeds_waits_for_the_next_training(tmp_path):
    """A storage that a signal stops half-way may have skipped what it was reading."""
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"))
    records = []

    class Pressed(optuna.pruners.NopPruner):
        def prune(self, study, trial):
            signal.raise_signal(signal.SIGINT)
            records.append(len(seed_records(trial.user_attrs)))
            return False

    study.pruner = Pressed()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(SeedObjective(train, seeds=SeedList(8), n_base=4), n_trials=1)
    assert records == [1]
    assert recover_stale(study) == (0,)


def test_a_recovery_that_died_half_way_is_finished_by_the_next(storage, study_name):
    study = optuna.create_study(storage=storage, study_name=study_name)
    number, _ = dead_trial(study, reported=1, recorded=1, beat=0.0)
    trial_id = study.trials[number]._trial_id
    storage.set_trial_user_attr(trial_id, "trueup:abandoned_at", time.time() - 500.0)
    storage.set_trial_user_attr(trial_id, "trueup:status", "abandoned")
    storage.set_trial_state_values(trial_id, TrialState.FAIL)
    assert recover_stale(study) == (number,)
    assert recover_stale(study) == ()


def test_trials_keep_beating_while_they_train(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=url, study_name="beats")

    def slow(trial, seed):
        for _ in range(2):
            waits_for_a_beat_after(time.time(), study)
        return 0.0

    study.optimize(SeedObjective(slow, seeds=[0], n_base=1, heartbeat=0.05), n_trials=1)
    assert study.trials[0].value == 0.0
    study._storage._backend.engine.dispose()


def waits_for_a_beat_after(moment, study):
    wait_until(lambda: study.trials[0].user_attrs.get(BEAT, 0.0) > moment)


def test_a_training_of_this_process_counts_as_alive_after_a_pause(tmp_path):
    """A machine that slept wakes with old beats; its threads must not bury each other."""
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"))
    recovered = []

    def sleeps(trial, seed):
        trial.set_user_attr(BEAT, time.time() - 500.0)
        recovered.append(recover_stale(study))
        return train(trial, seed)

    study.optimize(SeedObjective(sleeps, seeds=SeedList(8)), n_trials=1)
    assert recovered == [(), (), ()]
    assert study.trials[0].state == TrialState.COMPLETE


def test_finals_go_on_after_a_seed_was_given_to_another_worker(tmp_path):
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"), study_name="s")
    study.optimize(SeedObjective(train, seeds=SeedList(8)), n_trials=3)
    buried = []

    def is_taken_for_dead_once(trial, seed):
        if not buried:
            buried.extend(fail_stale(as_another_worker(tmp_path, "s::finals"), grace=-1.0))
        return train(trial, seed)

    table = finals(study, is_taken_for_dead_once, budget=4)
    assert len(buried) == 1
    assert table.final_trainings == 4


def test_a_search_says_that_another_worker_took_a_trial_over(tmp_path):
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"), study_name="s")

    def is_taken_for_dead(trial, seed):
        recover_stale(as_another_worker(tmp_path, "s"), grace=-1.0)
        return train(trial, seed)

    objective = SeedObjective(is_taken_for_dead, seeds=SeedList(8))
    with (
        pytest.warns(TrueupWarning, match="trial 0 gave no sign of life for 120 seconds"),
        pytest.raises(ValueError, match="Cannot tell a FAIL trial"),
    ):
        study.optimize(objective, n_trials=1)


def test_beats_go_on_after_the_storage_was_away(tmp_path):
    path = tmp_path / "journal.log"
    study = optuna.create_study(storage=open_journal(path))

    def slow(trial, seed):
        path.rename(tmp_path / "away")
        time.sleep(0.2)
        (tmp_path / "away").rename(path)
        waits_for_a_beat_after(time.time(), study)
        return 0.0

    study.optimize(SeedObjective(slow, seeds=[0], n_base=1, heartbeat=0.05), n_trials=1)
    assert study.trials[0].value == 0.0


def test_an_interrupt_stops_the_finals_at_once_and_they_resume(tmp_path):
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"), study_name="s")
    study.optimize(SeedObjective(train, seeds=SeedList(8)), n_trials=3)
    threads = set()

    def interrupted(trial, seed):
        threads.add(threading.current_thread())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finals(study, interrupted, budget=4)
    assert threads == {threading.main_thread()}  # the only one that Ctrl-C reaches
    assert finals(study, train, budget=4).final_trainings == 4
