from __future__ import annotations

import math
import subprocess
import sys
import threading
import warnings

import mlflow
import numpy as np
import pytest
import sklearn.metrics
from mlflow import MlflowClient
from mlflow.entities import Metric, RunTag
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
    mean_squared_error,
    root_mean_squared_error,
)

import trueup
from trueup import HoldOut, InSample
from trueup.errors import TrueupWarning
from trueup_mlflow import autolog, log_evaluation
from trueup_mlflow.items import is_own_key

with warnings.catch_warnings():  # MLflow warns of models without type hints
    warnings.simplefilter("ignore")

    class Identity(mlflow.pyfunc.PythonModel):
        def predict(self, model_input):
            return model_input


def logged(client, run):
    return client.get_run(run.info.run_id).data


def own(metrics):
    return {key for key in metrics if is_own_key(key)}


def test_run_gains_exactly_these_keys_and_tags(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("val_log_loss", value, step=3)
    data = logged(client, run)
    expected = trueup.evaluate(binary.y, binary.p)
    assert data.metrics == {
        "val_log_loss": value,
        "calibrated_val_log_loss": pytest.approx(expected.calibrated, rel=1e-12),
        "bias_term_val_log_loss": pytest.approx(expected.bias_term, rel=1e-12),
        "bias_cost_val_log_loss": pytest.approx(expected.bias_cost, rel=1e-9),
    }
    assert {key: text for key, text in data.tags.items() if key.startswith("trueup")} == {
        "trueup.split": "CrossFit(folds=5, salt=0)",
        "trueup.fingerprint.val_log_loss": expected.fingerprint,
        "trueup.version": trueup.__version__,
    }


def test_vanilla_value_is_bit_identical(client, off_at_the_end, binary):
    before = log_loss(binary.y, binary.p)
    autolog()
    after = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", after)
    assert logged(client, run).metrics["loss"].hex() == after.hex() == before.hex()


METRICS = {
    "log_loss": (log_loss, "binary", "log_loss", False),
    "brier": (brier_score_loss, "binary", "brier_score", False),
    "mse": (mean_squared_error, "regression", "mean_squared_error", False),
    "rmse": (root_mean_squared_error, "regression", "mean_squared_error", True),
    "root of mse": (
        lambda y, p: float(np.sqrt(mean_squared_error(y, p))),
        "regression",
        "mean_squared_error",
        True,
    ),
    "multiclass log_loss": (log_loss, "multiclass", "log_loss", False),
}


@pytest.mark.parametrize("name", METRICS)
def test_metric_gets_the_calibrated_twin_that_evaluate_computes(client, autologging, request, name):
    function, fixture, loss, root = METRICS[name]
    rows = request.getfixturevalue(fixture)
    with mlflow.start_run() as run:
        mlflow.log_metric(name, function(rows.y, rows.p))
    expected = trueup.evaluate(rows.y, rows.p, loss=loss)
    calibrated = math.sqrt(expected.calibrated) if root else expected.calibrated
    metrics = logged(client, run).metrics
    assert metrics[f"calibrated_{name}"] == pytest.approx(calibrated, rel=1e-12)
    bias = expected.bias_term
    terms = {"": bias} if isinstance(bias, float) else {f"_{i}": b for i, b in enumerate(bias)}
    for suffix, term in terms.items():
        assert metrics[f"bias_term_{name}{suffix}"] == pytest.approx(term, rel=1e-12)


def test_multiclass_brier_score_is_calibrated_by_the_softmax_shift(client, autologging, multiclass):
    value = brier_score_loss(multiclass.y, multiclass.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("brier", value)
    metrics = logged(client, run).metrics
    bias = trueup.evaluate(multiclass.y, multiclass.p).bias_term
    assert metrics["bias_term_brier_0"] == pytest.approx(bias[0], rel=1e-12)
    assert metrics["calibrated_brier"] < value
    assert metrics["calibrated_brier"] + metrics["bias_cost_brier"] == pytest.approx(value)


def test_named_classes_float32_two_columns_and_weights_are_read(client, autologging, binary):
    names = np.array(["no", "yes"])[binary.y]
    columns = np.column_stack([1 - binary.p, binary.p]).astype(np.float32)
    weight = np.arange(len(names)) % 3 + 1
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(names, columns, sample_weight=weight))
    expected = trueup.evaluate(binary.y, columns[:, 1].astype(float), sample_weight=weight)
    assert logged(client, run).metrics["calibrated_loss"] == pytest.approx(expected.calibrated)


def test_positive_label_of_the_brier_score_is_read(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("brier", brier_score_loss(binary.y, 1 - binary.p, pos_label=0))
    expected = trueup.evaluate(1 - binary.y, 1 - binary.p, loss="brier_score")
    assert logged(client, run).metrics["calibrated_brier"] == pytest.approx(expected.calibrated)


def test_saturated_float32_probabilities_keep_their_vanilla_and_gain_a_twin(
    client, autologging, binary
):
    p = binary.p.astype(np.float32)
    p[:5], p[5:10] = 1.0, 0.0
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, p))
    metrics = logged(client, run).metrics
    assert metrics["calibrated_loss"] + metrics["bias_cost_loss"] == pytest.approx(metrics["loss"])


# MLflow 3.17 calls log_loss with the name of an argument that scikit-learn 1.9 deprecates.
@pytest.mark.filterwarnings("ignore:`y_pred` was renamed:FutureWarning")
@pytest.mark.parametrize("when", ["before", "after"])
def test_autolog_composes_with_that_of_scikit_learn(client, off_at_the_end, binary, when):
    if when == "before":
        autolog()
    mlflow.sklearn.autolog(log_models=False, log_datasets=False, silent=True)
    if when == "after":
        autolog()
    try:
        x = binary.p[:, None]
        with mlflow.start_run() as run:
            model = LogisticRegression(C=0.01).fit(x[:200], binary.y[:200])
            p_val = model.predict_proba(x[200:])
            y_val = binary.y[200:]
            value = sklearn.metrics.log_loss(y_val, p_val)
            mlflow.log_metric("mine", value)
    finally:
        mlflow.sklearn.autolog(disable=True)
    metrics = logged(client, run).metrics
    post_training = {key for key in metrics if key.startswith("log_loss")}
    assert len(post_training) == 1
    calibrated = trueup.evaluate(y_val, p_val).calibrated
    for key in ("mine", *post_training):
        assert metrics[key] == value
        assert metrics[f"calibrated_{key}"] == pytest.approx(calibrated, rel=1e-12)
    assert "training_log_loss" in metrics
    assert not any("training" in key for key in own(metrics))


def test_name_bound_before_autolog_is_watched(client, off_at_the_end, binary):
    bound_early = log_loss
    autolog()
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", bound_early(binary.y, binary.p))
    assert "calibrated_loss" in logged(client, run).metrics


def test_twins_go_into_the_same_batch_with_step_timestamp_model_and_dataset(
    client, autologging, binary
):
    dataset = mlflow.data.from_numpy(binary.p, targets=binary.y, name="val")
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        model = mlflow.initialize_logged_model(name="m")
        mlflow.log_metrics(
            {"loss": value, "other": 1.5},
            step=7,
            timestamp=1234567,
            model_id=model.model_id,
            dataset=dataset,
        )
    for key in ("loss", "calibrated_loss", "bias_term_loss", "bias_cost_loss"):
        (point,) = client.get_metric_history(run.info.run_id, key)
        assert (point.step, point.timestamp) == (7, 1234567)
    on_model = {
        metric.key: (metric.step, metric.timestamp, metric.dataset_name, metric.dataset_digest)
        for metric in client.get_logged_model(model.model_id).metrics
    }
    assert {"loss", "calibrated_loss", "bias_term_loss", "bias_cost_loss"} <= on_model.keys()
    assert set(on_model.values()) == {(7, 1234567, dataset.name, dataset.digest)}
    assert not any("other" in key for key in own(logged(client, run).metrics))


def test_series_over_steps_gets_a_twin_at_each_step(client, autologging, binary):
    with mlflow.start_run() as run:
        for step in range(4):
            mlflow.log_metric("loss", log_loss(binary.y, binary.p * (0.9 + 0.01 * step)), step=step)
    history = client.get_metric_history(run.info.run_id, "calibrated_loss")
    assert [point.step for point in history] == [0, 1, 2, 3]


def test_nested_run_alone_gains_the_twin(client, autologging, binary):
    with mlflow.start_run() as parent, mlflow.start_run(nested=True) as child:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
    assert "calibrated_loss" in logged(client, child).metrics
    assert logged(client, parent).metrics == {}


def test_threads_log_to_their_own_runs(client, autologging):
    rows = [trueup_rows(seed) for seed in range(4)]
    runs = [client.create_run(client.get_experiment_by_name("tests").experiment_id) for _ in rows]

    def work(index):
        y, p = rows[index]
        client.log_metric(runs[index].info.run_id, "loss", log_loss(y, p))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run, (y, p) in zip(runs, rows, strict=True):
        calibrated = logged(client, run).metrics["calibrated_loss"]
        assert calibrated == pytest.approx(trueup.evaluate(y, p).calibrated, rel=1e-12)


def trueup_rows(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, 300)
    return (rng.uniform(size=300) < p).astype(int), p * 0.9


def test_asynchronous_logging_carries_the_twin(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", value, synchronous=False).wait()
        mlflow.log_metrics({"again": value}, synchronous=False).wait()
    metrics = logged(client, run).metrics
    assert metrics["calibrated_loss"] == metrics["calibrated_again"]


def test_model_logged_later_at_the_step_gets_the_twins_once(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
        model = mlflow.pyfunc.log_model(name="m", python_model=Identity(), pip_requirements=[])
    on_model = [m.key for m in client.get_logged_model(model.model_id).metrics]
    assert sorted(on_model) == [
        "bias_cost_loss",
        "bias_term_loss",
        "calibrated_loss",
        "loss",
    ]
    assert len(client.get_metric_history(run.info.run_id, "calibrated_loss")) == 1


def test_explicit_logging_is_not_doubled(client, autologging, binary):
    with mlflow.start_run() as run:
        mlflow.log_metric("log_loss", log_loss(binary.y, binary.p))
        log_evaluation(binary.y, binary.p)
    assert len(client.get_metric_history(run.info.run_id, "calibrated_log_loss")) == 1


def test_options_choose_split_and_excluded_keys(client, off_at_the_end, binary):
    autolog(split=InSample(), exclude=("secret",))
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metrics({"training_loss": value, "secret_loss": value})
    data = logged(client, run)
    expected = trueup.evaluate(binary.y, binary.p, split=InSample()).calibrated
    assert data.metrics["calibrated_training_loss"] == pytest.approx(expected, rel=1e-12)
    assert data.tags["trueup.split"] == "InSample()"
    assert "calibrated_secret_loss" not in data.metrics


def test_disable_takes_every_hook_off(client, binary):
    originals = MlflowClient.log_metric, MlflowClient.log_batch
    cell = log_loss.__closure__[log_loss.__code__.co_freevars.index("func")]
    inner = cell.cell_contents
    autolog()
    autolog()
    assert cell.cell_contents is not inner
    autolog(disable=True)
    autolog(disable=True)
    assert (MlflowClient.log_metric, MlflowClient.log_batch) == originals
    assert cell.cell_contents is inner
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
    assert own(logged(client, run).metrics) == set()


UNRECOGNISED = {
    "another number": lambda rows: log_loss(rows.y, rows.p) + 0.1,
    "rounded": lambda rows: round(log_loss(rows.y, rows.p), 6),
    "sum over rows": lambda rows: log_loss(rows.y, rows.p, normalize=False),
    "unscaled brier": lambda rows: brier_score_loss(rows.y, rows.p, scale_by_half=False),
    "several outputs": lambda rows: mean_squared_error(
        np.column_stack([rows.y, rows.y]), np.column_stack([rows.p, 1 - rows.p])
    ),
    "a number of few digits": lambda _: mean_squared_error([0.0, 1.0], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", UNRECOGNISED)
def test_number_that_is_not_a_mean_over_rows_gains_nothing(client, autologging, binary, name):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", UNRECOGNISED[name](binary))
    data = logged(client, run)
    assert own(data.metrics) == set()
    assert not any(tag.startswith("trueup") for tag in data.tags)


def log_twice(key, value):
    for step in range(2):
        mlflow.log_metric(key, value, step=step)


def test_undefined_metric_is_a_tag_and_one_warning(client, off_at_the_end, binary):
    autolog(split=HoldOut(0.02))
    value = log_loss(binary.y, binary.p)
    with (
        mlflow.start_run() as run,
        pytest.warns(TrueupWarning, match="calibrated values of loss") as seen,
    ):
        log_twice("loss", value)
    data = logged(client, run)
    assert data.metrics == {"loss": value}
    assert "at least 10 rows of each class" in data.tags["trueup.skipped.loss"]
    assert len(seen) == 1


def test_user_errors_of_metric_and_logging_stay_the_users(client, autologging, binary):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        log_loss(binary.y[:-1], binary.p)
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run(), pytest.raises(mlflow.MlflowException, match="Invalid value"):
        mlflow.log_metric("a=b", value)


def test_key_that_leaves_no_room_for_a_longer_one_is_logged_without_twin(
    client, autologging, binary
):
    key = "k" * 245
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match="longer than 250"):
        mlflow.log_metric(key, log_loss(binary.y, binary.p))
    assert list(logged(client, run).metrics) == [key]


def test_batch_of_params_and_tags_keeps_them(client, autologging, binary):
    value = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        client.log_batch(
            run.info.run_id,
            [Metric("loss", value, 1, 0)],
            (),
            [RunTag("mine", "kept")],
        )
    data = logged(client, run)
    assert data.tags["mine"] == "kept"
    assert "calibrated_loss" in data.metrics


def test_arrays_changed_after_the_call_do_not_change_the_twin(client, autologging, binary):
    expected = trueup.evaluate(binary.y, binary.p).calibrated
    p = binary.p.copy()
    value = log_loss(binary.y, p)
    p[:] = 0.5
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", value)
    assert logged(client, run).metrics["calibrated_loss"] == pytest.approx(expected, rel=1e-12)


def test_changed_inside_of_scikit_learn_is_one_warning_and_no_hook(tmp_path):
    code = """
import sklearn.metrics._classification as module, sklearn.metrics._regression as other, warnings
for place, name in ((module, "log_loss"), (other, "mean_squared_error")):
    setattr(place, name, lambda y_true, y_pred: 0.123456)
from trueup_mlflow import autolog
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    autolog()
print(len([w for w in seen if "autologging leaves out" in str(w.message)]))
import mlflow
with mlflow.start_run() as run:
    mlflow.log_metric("loss", module.log_loss(None, None))
print(mlflow.get_run(run.info.run_id).data.metrics)
"""
    environment = {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db", "PATH": ""}
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    assert run.stdout.splitlines() == ["1", "{'loss': 0.123456}"]


def test_logged_metric_costs_no_request_more(server, off_at_the_end, binary):
    value = log_loss(binary.y, binary.p)

    def requests(key):
        with mlflow.start_run():
            server.requests.clear()
            mlflow.log_metric(key, value)
            one = server.paths()
            server.requests.clear()
            mlflow.log_metrics({key: value, "other": 1.5}, step=1)
            return one, server.paths()

    one, several = requests("loss")
    assert one == ["runs/log-metric"]
    autolog()
    value = log_loss(binary.y, binary.p)
    one_with_twins, several_with_twins = requests("loss")
    assert one_with_twins == ["runs/log-batch"]
    assert several_with_twins == several == ["runs/log-batch"]
    latest = mlflow.search_runs(experiment_names=["tests"], max_results=1)
    assert latest["metrics.calibrated_loss"].notna().all()


@pytest.mark.parametrize("log", [mlflow.log_metric, lambda k, v: mlflow.log_metrics({k: v})])
def test_warning_points_to_the_users_line(client, off_at_the_end, binary, log):
    autolog(split=HoldOut(0.02))
    with mlflow.start_run(), pytest.warns(TrueupWarning) as seen:
        log("loss", log_loss(binary.y, binary.p))
    assert seen[0].filename == __file__
