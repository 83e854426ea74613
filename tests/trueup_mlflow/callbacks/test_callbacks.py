from __future__ import annotations

import mlflow
import numpy as np
import pytest

import trueup
from trueup.errors import TrueupWarning

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

N, N_TRAIN = 400, 200


def rows(kind):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, 3))
    signal = x[:, 0]
    y = {
        "binary": (signal + rng.logistic(size=N) > 0).astype(float),
        "multiclass": (signal[:, None] * np.arange(3) + rng.gumbel(size=(N, 3))).argmax(axis=1),
        "regression": signal + rng.normal(size=N),
        "counts": rng.poisson(np.exp(0.5 * signal)).astype(float),
    }[kind]
    return (x[:N_TRAIN], y[:N_TRAIN]), (x[N_TRAIN:], y[N_TRAIN:])


def metrics_of(client, run):
    return client.get_run(run.info.run_id).data.metrics


XGBOOST = {
    "binary": ({"objective": "binary:logistic"}, "log_loss"),
    "multiclass": ({"objective": "multi:softprob", "num_class": 3}, "log_loss"),
    "regression": ({"objective": "reg:squarederror"}, "mean_squared_error"),
    "counts": ({"objective": "count:poisson"}, "poisson_deviance"),
}


@pytest.mark.parametrize("kind", XGBOOST)
def test_xgboost_logs_the_final_model(client, kind):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    params, loss = XGBOOST[kind]
    train, (x_val, y_val) = rows(kind)
    val = xgboost.DMatrix(x_val, y_val)
    with mlflow.start_run() as run:
        booster = xgboost.train(
            {**params, "nthread": 1},
            xgboost.DMatrix(*train),
            5,
            callbacks=[TrueupCallback(val, split=trueup.InSample())],
        )
    predicted = booster.predict(val).astype(float)
    expected = trueup.evaluate(y_val, predicted, loss=loss, split=trueup.InSample())
    (point,) = client.get_metric_history(run.info.run_id, f"calibrated_val_{loss}")
    assert point.value == pytest.approx(expected.calibrated, rel=1e-5)
    assert point.step == 4
    assert metrics_of(client, run)[f"val_{loss}"] == pytest.approx(expected.vanilla, rel=1e-5)


def test_xgboost_logs_every_so_often_and_the_best_iteration(client):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    train, validation = rows("binary")
    val = xgboost.DMatrix(*validation)
    with mlflow.start_run() as run:
        booster = xgboost.train(
            {"objective": "binary:logistic", "nthread": 1, "eta": 1.0},
            xgboost.DMatrix(*train),
            40,
            evals=[(val, "val")],
            early_stopping_rounds=4,
            verbose_eval=False,
            callbacks=[TrueupCallback(val, every=3)],
        )
    history = client.get_metric_history(run.info.run_id, "calibrated_val_log_loss")
    steps = [point.step for point in history]
    rounds = booster.num_boosted_rounds()
    assert rounds < 40
    assert set(steps) == {*range(2, rounds, 3), booster.best_iteration}


def test_xgboost_sklearn_api_and_cross_validation_take_the_callback(client):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    (x, y), validation = rows("binary")
    val = xgboost.DMatrix(*validation)
    with mlflow.start_run() as run:
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1, callbacks=[TrueupCallback(val)]).fit(x, y)
    assert "calibrated_val_log_loss" in metrics_of(client, run)
    with mlflow.start_run() as run:
        xgboost.cv(
            {"objective": "binary:logistic", "nthread": 1},
            xgboost.DMatrix(x, y),
            2,
            nfold=2,
            callbacks=[TrueupCallback(val, every=1)],
        )
    assert metrics_of(client, run) == {}


LIGHTGBM = {
    "binary": ({"objective": "binary"}, "log_loss"),
    "multiclass": ({"objective": "multiclass", "num_class": 3}, "log_loss"),
    "regression": ({"objective": "regression"}, "mean_squared_error"),
    "counts": ({"objective": "poisson"}, "poisson_deviance"),
}
QUIET = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}


@pytest.mark.parametrize("kind", LIGHTGBM)
def test_lightgbm_logs_every_so_often_and_the_last_iteration(client, kind):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    params, loss = LIGHTGBM[kind]
    (x, y), (x_val, y_val) = rows(kind)
    with mlflow.start_run() as run:
        booster = lightgbm.train(
            {**params, **QUIET},
            lightgbm.Dataset(x, y),
            5,
            callbacks=[TrueupCallback(x_val, y_val, every=2)],
        )
    expected = trueup.evaluate(y_val, booster.predict(x_val), loss=loss)
    history = client.get_metric_history(run.info.run_id, f"calibrated_val_{loss}")
    assert [point.step for point in history] == [1, 3, 4]
    assert history[-1].value == pytest.approx(expected.calibrated, rel=1e-9)


@pytest.mark.parametrize("objective", ["binary", "cross_entropy"])
def test_lightgbm_reads_the_slope_of_the_link_from_the_model(client, objective):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    (x, y), (x_val, y_val) = rows("binary")
    params = {"objective": objective, "sigmoid": 2.5, **QUIET}  # cross_entropy knows no slope
    with mlflow.start_run() as run:
        booster = lightgbm.train(
            params, lightgbm.Dataset(x, y), 3, callbacks=[TrueupCallback(x_val, y_val)]
        )
    expected = trueup.evaluate(y_val, booster.predict(x_val))
    found = metrics_of(client, run)
    assert found["val_log_loss"] == pytest.approx(expected.vanilla, rel=1e-9)
    assert found["calibrated_val_log_loss"] == pytest.approx(expected.calibrated, rel=1e-9)


def gradient_of_half_squares(predicted, data):
    return predicted - data.get_label(), np.ones_like(predicted)


UNCLEAR_IN_LIGHTGBM = {
    "cross_entropy_lambda": {"objective": "xentlambda"},
    "multiclassova": {"objective": "ova", "num_class": 2},
    "regression_l1": {"objective": "mae"},
    "quantile": {"objective": "quantile"},
    "lambdarank": {"objective": "lambdarank"},
    "custom": {"objective": gradient_of_half_squares},
}


@pytest.mark.parametrize("name", UNCLEAR_IN_LIGHTGBM)
def test_lightgbm_guesses_no_loss(client, name):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    (x, y), (x_val, y_val) = rows("binary")
    group = [N_TRAIN] if name == "lambdarank" else None
    with (
        mlflow.start_run() as run,
        pytest.warns(TrueupWarning, match=rf"'{name}'.*pass loss=\.\.\.") as seen,
    ):
        lightgbm.train(
            {**UNCLEAR_IN_LIGHTGBM[name], **QUIET},
            lightgbm.Dataset(x, y, group=group),
            3,
            callbacks=[TrueupCallback(x_val, y_val, every=1)],
        )
    assert len(seen) == 1
    data = client.get_run(run.info.run_id).data
    assert data.metrics == {}
    assert "pass loss=..." in data.tags["trueup.skipped.val_loss"]


def test_lightgbm_takes_the_loss_that_is_passed(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    (x, y), (x_val, y_val) = rows("regression")
    with mlflow.start_run() as run:
        booster = lightgbm.train(
            {"objective": gradient_of_half_squares, **QUIET},
            lightgbm.Dataset(x, y),
            3,
            callbacks=[TrueupCallback(x_val, y_val, loss="mean_squared_error")],
        )
    expected = trueup.evaluate(y_val, booster.predict(x_val), loss="mean_squared_error")
    assert metrics_of(client, run)["calibrated_val_mean_squared_error"] == pytest.approx(
        expected.calibrated
    )


def test_scores_that_are_no_logits_get_no_loss_of_probabilities(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback as LightGBMCallback
    from trueup_mlflow.callbacks.xgboost import TrueupCallback as XGBoostCallback

    (x, y), (x_val, y_val) = rows("binary")
    val = xgboost.DMatrix(x_val, y_val)
    with mlflow.start_run() as run:
        with pytest.warns(TrueupWarning, match="no logits"):
            xgboost.train(
                {"objective": "binary:hinge", "nthread": 1},
                xgboost.DMatrix(x, y),
                2,
                callbacks=[XGBoostCallback(val, loss="log_loss")],
            )
        with pytest.warns(TrueupWarning, match="no logits"):
            lightgbm.train(
                {"objective": "ova", "num_class": 2, **QUIET},
                lightgbm.Dataset(x, y),
                2,
                callbacks=[LightGBMCallback(x_val, y_val, loss="log_loss")],
            )
    assert metrics_of(client, run) == {}


@pytest.mark.parametrize(
    "objective",
    ["binary:hinge", "rank:pairwise", "reg:absoluteerror", "reg:gamma", "reg:logistic"],
)
def test_xgboost_guesses_no_loss(client, objective):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    (x, y), (x_val, y_val) = rows("binary")
    train = xgboost.DMatrix(x, y + 1.0 if objective == "reg:gamma" else y)
    if objective == "rank:pairwise":
        train.set_group([N_TRAIN])
    val = xgboost.DMatrix(x_val, y_val)
    with (
        mlflow.start_run() as run,
        pytest.warns(TrueupWarning, match=rf"'{objective}'.*pass loss=\.\.\.") as seen,
    ):
        xgboost.train(
            {"objective": objective, "nthread": 1},
            train,
            3,
            callbacks=[TrueupCallback(val, every=1)],
        )
    assert len(seen) == 1
    data = client.get_run(run.info.run_id).data
    assert data.metrics == {}
    assert "pass loss=..." in data.tags["trueup.skipped.val_loss"]


@pytest.mark.parametrize("objective", ["binary:logitraw", "multi:softmax"])
def test_xgboost_reads_margins_as_logits(client, objective):
    from trueup_mlflow.callbacks.xgboost import TrueupCallback

    kind = "multiclass" if objective.startswith("multi") else "binary"
    (x, y), (x_val, y_val) = rows(kind)
    val = xgboost.DMatrix(x_val, y_val)
    params = {"objective": objective, "nthread": 1} | (
        {"num_class": 3} if kind == "multiclass" else {}
    )
    with mlflow.start_run() as run:
        booster = xgboost.train(params, xgboost.DMatrix(x, y), 3, callbacks=[TrueupCallback(val)])
    margin = booster.predict(val, output_margin=True).astype(float)
    expected = trueup.evaluate(y_val, y_logit=margin)
    assert metrics_of(client, run)["calibrated_val_log_loss"] == pytest.approx(expected.calibrated)


def test_failure_in_a_callback_is_one_warning_and_a_tag_and_training_ends_well(client):
    from trueup_mlflow.callbacks.lightgbm import TrueupCallback

    (x, y), (x_val, y_val) = rows("binary")
    with (
        mlflow.start_run() as run,
        pytest.warns(TrueupWarning, match="y_true must be 0 or 1") as seen,
    ):
        booster = lightgbm.train(
            {"objective": "binary", **QUIET},
            lightgbm.Dataset(x, y),
            4,
            callbacks=[TrueupCallback(x_val, y_val + 1, every=1)],
        )
    assert booster.current_iteration() == 4
    assert len(seen) == 1
    data = client.get_run(run.info.run_id).data
    assert data.metrics == {}
    assert "y_true must be 0 or 1" in data.tags["trueup.skipped.val_log_loss"]
