"""The vanilla value of the callbacks is the library's own metric, in each mode of boosting."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

from trueup.errors import TrueupWarning

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

N, N_TRAIN, ROUNDS = 400, 250, 5
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
BINARY = (X[:, 0] + RNG.logistic(size=N) > 0).astype(float)
CLASSES = (X[:, :1] * np.arange(3) + RNG.gumbel(size=(N, 3))).argmax(axis=1)
TARGET = X[:, 0] + RNG.normal(size=N)
OFFSET = 0.7 * X[:, 1]
FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}

LIGHTGBM = {
    "plain": ({}, BINARY, None),
    "forest": (FOREST, BINARY, None),
    "dart": ({"boosting": "dart"}, BINARY, None),
    "slope": ({"sigmoid": 2.0}, BINARY, None),
    "offset of each row": ({}, BINARY, OFFSET),
    "constant offset": ({}, BINARY, 0.7),
    "forest of classes": ({**FOREST, "objective": "multiclass", "num_class": 3}, CLASSES, None),
    "squares": ({"objective": "regression"}, TARGET, None),
    "squares with offset": ({"objective": "regression"}, TARGET, OFFSET),
    "forest of squares": ({**FOREST, "objective": "regression"}, TARGET, None),
}


def of_rows(offset, rows):
    if offset is None or np.ndim(offset) == 1:
        return None if offset is None else offset[rows]
    return np.full(len(X[rows]), offset)


def train_lightgbm(callback, params, y, offset, **options):
    train, valid = slice(None, N_TRAIN), slice(N_TRAIN, None)
    data = lightgbm.Dataset(X[train], y[train], init_score=of_rows(offset, train))
    held = lightgbm.Dataset(X[valid], y[valid], reference=data, init_score=of_rows(offset, valid))
    seen = {}
    params = {"objective": "binary", "verbose": -1, "num_threads": 1, **params}
    callbacks = [callback, lightgbm.record_evaluation(seen)]
    lightgbm.train(params, data, ROUNDS, valid_sets=[held], callbacks=callbacks, **options)
    (values,) = seen["valid_0"].values()
    return values


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm(client, name):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    params, y, offset = LIGHTGBM[name]
    given = None if offset is None else of_rows(offset, slice(N_TRAIN, None))
    given = offset if np.ndim(offset) == 0 else given
    callback = TrueupCallback(X[N_TRAIN:], y[N_TRAIN:], every=1, init_score=given)
    with mlflow.start_run() as run:
        own = train_lightgbm(callback, params, y, offset)
    loss = "mean_squared_error" if y is TARGET else "log_loss"
    points = client.get_metric_history(run.info.run_id, f"val_{loss}")
    assert [point.value for point in points] == pytest.approx(own, rel=1e-6)


def test_lightgbm_with_an_init_score_that_is_not_given_says_so(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    with mlflow.start_run(), pytest.warns(TrueupWarning, match="init_score must be given"):
        train_lightgbm(TrueupCallback(X[N_TRAIN:], BINARY[N_TRAIN:]), {}, BINARY, OFFSET)


def test_cross_validation_is_said_not_to_be_covered():
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback as ForLightGBM
    from trueup_mlflow.callbacks.xgboost import TrueupCallback as ForXGBoost

    params = {"objective": "binary", "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X, BINARY)
    with pytest.warns(TrueupWarning, match=r"lightgbm\.cv is not covered"):
        lightgbm.cv(params, data, 2, nfold=2, callbacks=[ForLightGBM(X, BINARY)])
    matrix = xgboost.DMatrix(X, BINARY)
    params = {"objective": "binary:logistic", "nthread": 1}
    with pytest.warns(TrueupWarning, match=r"xgboost\.cv is not covered"):
        xgboost.cv(params, matrix, 2, nfold=2, callbacks=[ForXGBoost(matrix)])


XGBOOST = {
    "plain": ({}, None),
    "dart": ({"booster": "dart", "rate_drop": 0.5}, None),
    "forest": ({"num_parallel_tree": 4, "subsample": 0.6, "eta": 1.0}, None),
    "offset": ({}, OFFSET),
}


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost(client, name):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    params, offset = XGBOOST[name]
    params = {"objective": "binary:logistic", "eval_metric": "logloss", "nthread": 1, **params}
    matrices = [
        xgboost.DMatrix(X[rows], BINARY[rows], base_margin=of_rows(offset, rows))
        for rows in (slice(None, N_TRAIN), slice(N_TRAIN, None))
    ]
    seen = {}
    with mlflow.start_run() as run:
        xgboost.train(
            params,
            matrices[0],
            ROUNDS,
            evals=[(matrices[1], "val")],
            evals_result=seen,
            verbose_eval=False,
            callbacks=[TrueupCallback(matrices[1], every=1)],
        )
    points = client.get_metric_history(run.info.run_id, "val_log_loss")
    assert [point.value for point in points] == pytest.approx(seen["val"]["logloss"], rel=1e-5)


@pytest.mark.parametrize("loss", [None, "log_loss"])
def test_ranking_objectives_are_refused(client, loss):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback as ForLightGBM
    from trueup_mlflow.callbacks.xgboost import TrueupCallback as ForXGBoost

    grades = BINARY.astype(int)
    data = lightgbm.Dataset(X, grades, group=[20] * 20)
    params = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
    with mlflow.start_run(), pytest.warns(TrueupWarning, match="objective is|which ranks"):
        lightgbm.train(params, data, 1, callbacks=[ForLightGBM(X, grades, loss=loss)])
    matrix = xgboost.DMatrix(X, grades, group=[20] * 20)
    params = {"objective": "rank:ndcg", "nthread": 1}
    with mlflow.start_run(), pytest.warns(TrueupWarning, match="objective is|which ranks"):
        xgboost.train(params, matrix, 1, callbacks=[ForXGBoost(matrix, loss=loss)])


def log_loss_of_margins(margin, data):
    label = data.get_label()
    return "own", float(np.mean(np.logaddexp(0.0, margin) - label * margin))


def logistic(margin, data):
    probability = 1 / (1 + np.exp(-margin))
    return probability - data.get_label(), probability * (1 - probability)


def test_custom_objectives_are_scored_by_the_loss_that_is_given(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback as ForLightGBM
    from trueup_mlflow.callbacks.xgboost import TrueupCallback as ForXGBoost

    held, seen = X[N_TRAIN:], {}
    data = lightgbm.Dataset(X[:N_TRAIN], BINARY[:N_TRAIN])
    valid = lightgbm.Dataset(held, BINARY[N_TRAIN:], reference=data)
    params = {"objective": logistic, "metric": "none", "verbose": -1, "num_threads": 1}
    with mlflow.start_run() as run:
        lightgbm.train(
            params,
            data,
            ROUNDS,
            valid_sets=[valid],
            feval=lambda margin, rows: (*log_loss_of_margins(margin, rows), False),
            callbacks=[
                ForLightGBM(held, BINARY[N_TRAIN:], loss="log_loss", every=1, prefix="lightgbm_"),
                lightgbm.record_evaluation(seen),
            ],
        )
        own = {"lightgbm": seen["valid_0"]["own"]}
        matrix = xgboost.DMatrix(held, BINARY[N_TRAIN:])
        callback = ForXGBoost(matrix, loss="log_loss", every=1, prefix="xgboost_")
        xgboost.train(
            {"nthread": 1, "base_score": 0.0, "disable_default_eval_metric": True},
            xgboost.DMatrix(X[:N_TRAIN], BINARY[:N_TRAIN]),
            ROUNDS,
            evals=[(matrix, "val")],
            evals_result=seen,
            obj=logistic,
            custom_metric=log_loss_of_margins,
            verbose_eval=False,
            callbacks=[callback],
        )
        own["xgboost"] = seen["val"]["own"]
    for library, values in own.items():
        points = client.get_metric_history(run.info.run_id, f"{library}_log_loss")
        assert [point.value for point in points] == pytest.approx(values, rel=1e-5)


def test_early_stopping_keeps_the_iteration_that_the_library_keeps(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback as ForLightGBM
    from trueup_mlflow.callbacks.xgboost import TrueupCallback as ForXGBoost

    held = X[N_TRAIN:], BINARY[N_TRAIN:]
    data = lightgbm.Dataset(X[:N_TRAIN], BINARY[:N_TRAIN])
    params = {"objective": "binary", "learning_rate": 0.9, "verbose": -1, "num_threads": 1}
    with mlflow.start_run() as run:
        model = lightgbm.train(
            params,
            data,
            60,
            valid_sets=[lightgbm.Dataset(*held, reference=data)],
            callbacks=[
                lightgbm.early_stopping(3, verbose=False),
                ForLightGBM(*held, every=1, prefix="lightgbm_"),
            ],
        )
        matrix = xgboost.DMatrix(*held)
        booster = xgboost.train(
            {"objective": "binary:logistic", "eval_metric": "logloss", "eta": 0.9, "nthread": 1},
            xgboost.DMatrix(X[:N_TRAIN], BINARY[:N_TRAIN]),
            60,
            evals=[(matrix, "val")],
            early_stopping_rounds=3,
            verbose_eval=False,
            callbacks=[ForXGBoost(matrix, prefix="xgboost_")],
        )
    points = client.get_metric_history(run.info.run_id, "lightgbm_log_loss")
    assert len(points) == model.best_iteration + 3 < 60
    best = {point.step + 1: point.value for point in points}[model.best_iteration]
    assert best == pytest.approx(model.best_score["valid_0"]["binary_logloss"], rel=1e-6)
    (point,) = client.get_metric_history(run.info.run_id, "xgboost_log_loss")
    assert point.step == booster.best_iteration
    assert point.value == pytest.approx(booster.best_score, rel=1e-5)
