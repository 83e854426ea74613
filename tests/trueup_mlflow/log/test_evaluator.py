from __future__ import annotations

import warnings

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from PIL import Image
from sklearn.linear_model import LinearRegression, LogisticRegression

import trueup
from trueup.errors import TrueupWarning
from trueup_mlflow import autolog

with warnings.catch_warnings():  # MLflow warns of its own type hints while it is imported
    warnings.simplefilter("ignore")
    import mlflow.models.evaluation
    import mlflow.pyfunc

    class Probabilities(mlflow.pyfunc.PythonModel):
        def predict(self, model_input):
            return 1.0 / (1.0 + np.exp(-model_input["a"].to_numpy()))

    class NamedClasses(mlflow.pyfunc.PythonModel):
        def __init__(self, names):
            self.names = names

        def predict(self, model_input):
            p = 1.0 / (1.0 + np.exp(-model_input["a"].to_numpy()))
            return pd.DataFrame(dict(zip(self.names, (p, 1.0 - p), strict=True)))

    class LabelsOnly(mlflow.pyfunc.PythonModel):
        def predict(self, model_input):
            return (model_input["a"].to_numpy() > 0).astype(int)


# MLflow 3.17 reads data frames in ways that pandas 3.1 deprecates, gives advice on schemas, and
# its import hooks have an old interface.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Starting with pandas version 4.0:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:_ImportHookChainedLoader:ImportWarning"),
    pytest.mark.filterwarnings("ignore:Hint. Inferred schema contains integer:UserWarning"),
]
NO_PLOTS = {"log_model_explainability": False, "log_explainer": False}
CALIBRATED = ("calibrated_log_loss", "bias_term_log_loss", "bias_cost_log_loss")


@pytest.fixture(autouse=True)
def _blank_plots(monkeypatch):
    """Leave the default evaluator's plots empty: to draw them takes half of the time."""
    blank = Image.new("L", (1, 1))
    monkeypatch.setattr("matplotlib.pyplot.savefig", lambda path, **_options: blank.save(path))


def table(seed=0, n=300, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    scores = x[:, [0]] * np.arange(classes) + rng.gumbel(size=(n, classes))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    return frame.assign(y=scores.argmax(axis=1), field=rng.integers(0, 3, n))


def split(frame):
    return frame[:150], frame[150:].reset_index(drop=True)


def log_sklearn(model, frame):
    with mlflow.start_run():
        return mlflow.sklearn.log_model(
            model, name="m", pip_requirements=[], serialization_format="cloudpickle"
        )


FEATURES = ["a", "b", "c"]


def evaluate(model, data, evaluators, model_type="classifier", **options):
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            model,
            data,
            targets="y",
            model_type=model_type,
            evaluators=evaluators,
            **options,
        )
    return run.info.run_id, result


def number_of_points(client: MlflowClient, run_id, key):
    return len(client.get_metric_history(run_id, key))


EVALUATORS = {
    "none": (None, NO_PLOTS),
    "list": (["default", "trueup"], {"default": NO_PLOTS}),
    "trueup first": (["trueup", "default"], {"default": NO_PLOTS}),
    "trueup": ("trueup", {}),
}


@pytest.mark.parametrize("with_autolog", [False, True], ids=["", "autolog"])
@pytest.mark.parametrize("name", EVALUATORS)
def test_run_and_logged_model_get_one_point_for_each_metric(client, name, with_autolog):
    train, val = split(table())
    model = LogisticRegression().fit(train[FEATURES], train["y"])
    info = log_sklearn(model, train)
    evaluators, config = EVALUATORS[name]
    if with_autolog:
        autolog()
    try:
        run_id, result = evaluate(
            info.model_uri, val[[*FEATURES, "y"]], evaluators, evaluator_config=config
        )
    finally:
        autolog(disable=True)
    expected = trueup.evaluate(val["y"], model.predict_proba(val[FEATURES]))
    on_model = [m.key for m in client.get_logged_model(info.model_id).metrics]
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-9)
    assert result.metrics["log_loss"] == pytest.approx(expected.vanilla, rel=1e-9)
    for key in CALIBRATED:
        assert number_of_points(client, run_id, key) == 1, key
        assert on_model.count(key) == 1, key
    tags = client.get_run(run_id).data.tags
    assert tags["trueup.fingerprint.log_loss"] == expected.fingerprint


@pytest.mark.parametrize("with_autolog", [False, True], ids=["", "autolog"])
@pytest.mark.parametrize("evaluators", ["trueup", ["default", "trueup"]])
def test_model_without_an_id_gets_one_point_for_each_metric(client, evaluators, with_autolog):
    frame = table()
    targets = frame["y"] + frame["a"]
    data = frame[FEATURES].assign(y=targets)
    if with_autolog:
        autolog()
    try:
        run_id, _ = evaluate(
            lambda features: features["a"].to_numpy(), data, evaluators, model_type="regressor"
        )
    finally:
        autolog(disable=True)
    expected = trueup.evaluate(targets, frame["a"], loss="mean_squared_error")
    metrics = client.get_run(run_id).data.metrics
    assert metrics["calibrated_mean_squared_error"] == pytest.approx(expected.calibrated)
    for key in (
        "mean_squared_error",
        "calibrated_mean_squared_error",
        "bias_term_mean_squared_error",
    ):
        assert number_of_points(client, run_id, key) == 1, key


def test_vanilla_metric_of_the_default_evaluator_is_bit_identical(client):
    train, val = split(table())
    info = log_sklearn(LogisticRegression().fit(train[FEATURES], train["y"]), train)
    values = {
        str(evaluators): evaluate(
            info.model_uri,
            val[[*FEATURES, "y"]],
            evaluators,
            evaluator_config={"default": NO_PLOTS},
        )[1].metrics["log_loss"]
        for evaluators in (["default"], ["default", "trueup"])
    }
    assert len({value.hex() for value in values.values()}) == 1


def test_multiclass_model_gets_one_bias_term_for_each_class(client):
    train, val = split(table(classes=3))
    model = LogisticRegression().fit(train[FEATURES], train["y"])
    info = log_sklearn(model, train)
    _, result = evaluate(info.model_uri, val[[*FEATURES, "y"]], "trueup")
    expected = trueup.evaluate(val["y"], model.predict_proba(val[FEATURES]))
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-9)
    terms = [result.metrics[f"bias_term_log_loss_{index}"] for index in range(3)]
    assert terms == pytest.approx(expected.bias_term, rel=1e-6)


def test_columns_of_a_model_keep_the_order_of_its_classes(client):
    train, val = split(table(classes=3))
    model = LogisticRegression().fit(train[FEATURES], train["y"])
    expected = trueup.evaluate(val["y"], model.predict_proba(val[FEATURES]))
    model.classes_, model.coef_ = model.classes_[::-1], model.coef_[::-1]
    model.intercept_ = model.intercept_[::-1]
    info = log_sklearn(model, train)
    _, result = evaluate(info.model_uri, val[[*FEATURES, "y"]], "trueup")
    assert result.metrics["log_loss"] == pytest.approx(expected.vanilla, rel=1e-9)
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-9)
    assert result.metrics["bias_term_log_loss_0"] == pytest.approx(expected.bias_term[2], rel=1e-6)


def test_labels_of_a_column_of_objects_are_plain_zeros_and_ones(client):
    frame = table().assign(p=lambda rows: 1.0 / (1.0 + np.exp(-rows["a"])))
    expected = trueup.evaluate(frame["y"], frame["p"])
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=frame.assign(y=frame["y"].astype(object)),
            targets="y",
            predictions="p",
            model_type="classifier",
            evaluators="trueup",
        )
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-12)


def test_regression_model(client):
    train, val = split(table())
    model = LinearRegression().fit(train[FEATURES], train["y"])
    info = log_sklearn(model, train)
    _, result = evaluate(info.model_uri, val[[*FEATURES, "y"]], "trueup", "regressor")
    expected = trueup.evaluate(val["y"], model.predict(val[FEATURES]), loss="mean_squared_error")
    assert result.metrics["calibrated_mean_squared_error"] == pytest.approx(expected.calibrated)


@pytest.mark.parametrize("api", ["sklearn", "booster"])
def test_xgboost_model(client, api):
    import xgboost

    train, val = split(table())
    if api == "sklearn":
        model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(train[FEATURES], train["y"])
        p = model.predict_proba(val[FEATURES])[:, 1]
    else:
        matrix = xgboost.DMatrix(train[FEATURES], train["y"])
        model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 5)
        p = model.predict(xgboost.DMatrix(val[FEATURES]))
    with mlflow.start_run():
        info = mlflow.xgboost.log_model(model, name="m", pip_requirements=[])
    _, result = evaluate(info.model_uri, val[[*FEATURES, "y"]], "trueup")
    expected = trueup.evaluate(val["y"], p.astype(float))
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-6)


def log_pyfunc(model):
    with mlflow.start_run():
        return mlflow.pyfunc.log_model(name="m", python_model=model, pip_requirements=[])


def test_pyfunc_model_that_returns_probabilities(client):
    frame = table()
    info = log_pyfunc(Probabilities())
    _, result = evaluate(info.model_uri, frame[[*FEATURES, "y"]], "trueup")
    expected = trueup.evaluate(frame["y"], Probabilities().predict(frame))
    assert result.metrics["calibrated_log_loss"] == pytest.approx(expected.calibrated, rel=1e-9)


def test_class_columns_of_a_pyfunc_model_are_taken_by_their_names(client):
    _, data = split(table())
    data = data.assign(y=np.array(["no", "yes"])[data["y"]])
    info = log_pyfunc(NamedClasses(["yes", "no"]))
    run_id, _ = evaluate(info.model_uri, data[[*FEATURES, "y"]], "trueup")
    p = 1.0 / (1.0 + np.exp(-data["a"].to_numpy()))
    reference = trueup.evaluate(data["y"].to_numpy(), p, labels=["no", "yes"])
    metrics = client.get_run(run_id).data.metrics
    assert metrics["calibrated_log_loss"] == pytest.approx(reference.calibrated, rel=1e-12)


def test_class_columns_of_other_names_than_the_label_list_are_refused(client):
    _, data = split(table())
    info = log_pyfunc(NamedClasses(["p_yes", "p_no"]))
    config = {"label_list": [0, 1]}
    run_id, _ = evaluate(info.model_uri, data[[*FEATURES, "y"]], "trueup", evaluator_config=config)
    reason = client.get_run(run_id).data.tags["trueup.skipped.log_loss"]
    assert "predictions must have a column for each class of labels" in reason


def test_model_of_labels_is_a_tag_and_the_evaluation_goes_on(client):
    frame = table()
    info = log_pyfunc(LabelsOnly())
    with pytest.warns(TrueupWarning, match="must be probabilities"):
        run_id, result = evaluate(
            info.model_uri,
            frame[[*FEATURES, "y"]],
            ["default", "trueup"],
            evaluator_config={"default": NO_PLOTS},
        )
    assert "accuracy_score" in result.metrics
    assert not any(key.startswith("calibrated") for key in result.metrics)
    assert "probabilities" in client.get_run(run_id).data.tags["trueup.skipped.log_loss"]


def test_static_table_of_probabilities_with_fields_prefix_and_two_losses(client):
    frame = table().assign(p=lambda rows: 1.0 / (1.0 + np.exp(-rows["a"])))
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=frame,
            targets="y",
            predictions="p",
            model_type="classifier",
            evaluators="trueup",
            evaluator_config={
                "loss": ["log_loss", "brier_score"],
                "fields": ["field"],
                "metric_prefix": "val_",
                "split": trueup.HoldOut(0.3),
            },
        )
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics == result.metrics
    expected = trueup.evaluate(
        frame["y"], frame["p"], split=trueup.HoldOut(0.3), fields={"field": frame["field"]}
    )
    assert metrics["calibrated_val_log_loss"] == pytest.approx(expected.calibrated, rel=1e-12)
    assert metrics["val_log_loss"] == pytest.approx(expected.vanilla, rel=1e-12)
    assert metrics["val_field_ece_field"] == pytest.approx(
        expected.fields["field"].to_dict()["ece"]
    )
    assert "calibrated_val_brier_score" in metrics
    assert all(len(client.get_metric_history(run.info.run_id, key)) == 1 for key in metrics)


def test_undefined_metric_is_a_tag(client):
    frame = table().assign(p=0.3, y=0)
    with mlflow.start_run() as run, pytest.warns(TrueupWarning, match="was not logged"):
        result = mlflow.models.evaluate(
            data=frame,
            targets="y",
            predictions="p",
            model_type="classifier",
            evaluators="trueup",
        )
    assert result.metrics == {}
    assert "trueup.skipped.log_loss" in client.get_run(run.info.run_id).data.tags


def test_default_evaluator_alone_gets_twins_from_autologging(client):
    train, val = split(table())
    model = LogisticRegression().fit(train[FEATURES], train["y"])
    info = log_sklearn(model, train)
    autolog()
    try:
        run_id, _ = evaluate(
            info.model_uri, val[[*FEATURES, "y"]], "default", evaluator_config=NO_PLOTS
        )
    finally:
        autolog(disable=True)
    expected = trueup.evaluate(val["y"], model.predict_proba(val[FEATURES])).calibrated
    assert client.get_run(run_id).data.metrics["calibrated_log_loss"] == pytest.approx(expected)
    assert number_of_points(client, run_id, "calibrated_log_loss") == 1
