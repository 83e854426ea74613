"""The same study through Optuna's own ways past one process."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import optuna
import pytest
from optuna.storages import RDBStorage
from tests.spark_session import local_session, needs_spark
from tests.trueup_optuna.training import result, train

from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, confirm, finals, select_best
from trueup_optuna.study.companions import companion
from trueup_optuna.study.trial_state import seed_records


def run_study(storage, name, n_trials=8):
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=SeedRacePruner(8),
        load_if_exists=True,
    )
    study.optimize(SeedObjective(train, seeds=SeedList(6)), n_trials=n_trials)
    return study


def check(study):
    table = finals(study, train, budget=5)
    assert table.final_trainings == 5
    best = select_best(study)
    x = best.trial.params["x"]
    assert best.mean == pytest.approx(np.mean([result(x, seed) for seed in range(best.n_seeds)]))
    for trial in study.trials:
        values = [record.value for record in seed_records(trial.user_attrs)]
        assert values == [result(trial.params["x"], seed) for seed in range(len(values))]


@contextmanager
def shared_port():
    """Hold a port that gRPC, which shares its ports, can serve at, and nobody else can take."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_grpc_proxy_before_a_database(tmp_path):
    pytest.importorskip("grpc")
    database = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    with shared_port() as port:
        server = threading.Thread(
            target=optuna.storages.run_grpc_proxy_server,
            args=(database,),
            kwargs={"host": "127.0.0.1", "port": port},
            daemon=True,
        )
        server.start()
        proxy = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
        proxy.wait_server_ready(timeout=120)
        try:
            check(run_study(proxy, "proxied"))
        finally:
            proxy.close()
            database.engine.dispose()


@pytest.mark.filterwarnings("ignore")  # Dask and its event loops warn about their own insides
def test_a_dask_storage():
    distributed = pytest.importorskip("distributed")
    dask_storage = pytest.importorskip("optuna_integration.dask").DaskStorage
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        check(run_study(dask_storage(client=client), "dask"))


@pytest.mark.filterwarnings("ignore")  # Dask and its event loops warn about their own insides
def test_finals_and_confirmation_train_on_the_workers_of_a_cluster():
    distributed = pytest.importorskip("distributed")
    study = run_study(optuna.storages.InMemoryStorage(), "seeds elsewhere")
    alone = run_study(optuna.storages.InMemoryStorage(), "seeds elsewhere")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        table = finals(study, train_there, budget=6, executor=client)
        confirmed = confirm(study, train_there, n_seeds=3, executor=client)
    assert table == finals(alone, train, budget=6)
    assert confirmed == confirm(alone, train, n_seeds=3)
    race = companion(study, "finals").trials
    assert {trial.user_attrs["process"] for trial in race}.isdisjoint({os.getpid()})


@needs_spark
def test_finals_and_confirmation_train_on_the_workers_of_spark(tmp_path):
    study = run_study(optuna.storages.InMemoryStorage(), "seeds on Spark")
    alone = run_study(optuna.storages.InMemoryStorage(), "seeds on Spark")
    with local_session(tmp_path, {}) as session:
        table = finals(study, train_there, budget=4, executor=session)
        confirmed = confirm(study, train_there, n_seeds=2, executor=session)
        with pytest.raises(RuntimeError, match="no memory"):
            finals(study, break_there, budget=6, executor=session)
    assert table == finals(alone, train, budget=4)
    assert confirmed.values == confirm(alone, train, n_seeds=2).values
    race = companion(study, "finals").get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    assert {trial.user_attrs["process"] for trial in race}.isdisjoint({os.getpid()})


def train_there(trial, seed):
    trial.set_user_attr("process", os.getpid())
    trial.set_constraint("always", -1.0)
    assert trial.study.direction == optuna.study.StudyDirection.MINIMIZE
    return train(trial, seed)


def test_failures_elsewhere_are_those_of_here():
    study = run_study(optuna.storages.InMemoryStorage(), "failures elsewhere")
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(RuntimeError, match="no memory"):
            finals(study, break_there, budget=4, executor=pool)
        with pytest.raises(UndefinedMetricError, match="at least two of the seeds"):
            confirm(study, break_there, n_seeds=3, executor=pool, catch=RuntimeError)
    with pytest.raises(InvalidInputError, match="executor must have a method submit; got 4"):
        finals(study, train, budget=4, executor=4)


def test_two_configurations_that_fail_elsewhere_leave_none():
    study = run_study(optuna.storages.InMemoryStorage(), "failures elsewhere", n_trials=2)
    both = threading.Barrier(2, timeout=120)  # one that failed first would leave no race

    def break_together(trial, seed):
        both.wait()
        raise RuntimeError("no memory")

    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(UndefinedMetricError, match="that the finals dropped"),
    ):
        finals(study, break_together, budget=40, executor=pool, catch=RuntimeError, workers=2)


def break_there(trial, seed):
    raise RuntimeError("no memory")
