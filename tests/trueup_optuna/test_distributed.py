"""The same study through Optuna's own ways past one process."""

from __future__ import annotations

import socket
import threading

import numpy as np
import optuna
import pytest
from optuna.storages import RDBStorage
from tests.trueup_optuna.training import result, train

from trueup_optuna import SeedList, SeedObjective, SeedRacePruner, finals, select_best
from trueup_optuna.trial_state import seed_records


def run_study(storage, name):
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=SeedRacePruner(8),
        load_if_exists=True,
    )
    study.optimize(SeedObjective(train, seeds=SeedList(6)), n_trials=8)
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_grpc_proxy_before_a_database(tmp_path):
    pytest.importorskip("grpc")
    database = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    port = free_port()
    server = threading.Thread(
        target=optuna.storages.run_grpc_proxy_server,
        args=(database,),
        kwargs={"host": "127.0.0.1", "port": port},
        daemon=True,
    )
    server.start()
    proxy = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
    proxy.wait_server_ready(timeout=30)
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
