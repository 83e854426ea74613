"""One number a row from any registered model: chosen, cast and checked, never guessed."""

from __future__ import annotations

from importlib.util import find_spec

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema
from sklearn.linear_model import LogisticRegression

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow.monitor.check.check_registry import train_check
from trueup_mlflow.monitor.check.predictions import GivenPredictions, LoadedModel
from trueup_mlflow.monitor.check.reference import Wishes

pytestmark = [
    # MLflow's model saving and loading warn about themselves.
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
]


class Gives(mlflow.pyfunc.PythonModel):
    """Gives what a function makes of the input."""

    def __init__(self, make):
        self.make = make

    def predict(self, context, model_input):
        return self.make(model_input)


def loaded(tmp_path, make, signature=None):
    path = str(tmp_path / "model")
    model = Gives(make)
    mlflow.pyfunc.save_model(path, python_model=model, signature=signature, pip_requirements=[])
    return LoadedModel.load(path)


def save(classifier, path):
    options = {"serialization_format": "cloudpickle", "pip_requirements": []}
    mlflow.sklearn.save_model(classifier, path, **options)


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "y": a + 0.3 * rng.normal(size=n)})


def check(model, reference, **wishes):
    return train_check(model, reference, Wishes("y", **wishes))


def two_columns(table):
    return pd.DataFrame({"low": table["a"] - 9.0, "mean": table["a"]})


def test_several_columns_are_never_guessed(tmp_path):
    model = loaded(tmp_path, two_columns)
    with pytest.raises(InvalidInputError, match=r"got 2 columns, \['low', 'mean'\]"):
        check(model, rows())
    assert check(model, rows(), prediction="mean").schema.reference_error < 1.0
    with pytest.raises(InvalidInputError, match=r"got 'median' of \['low', 'mean'\]"):
        check(model, rows(), prediction="median")


def test_two_classes_by_name(tmp_path):
    def shares(table):
        yes = 1.0 / (1.0 + np.exp(-3.0 * table["a"]))
        return pd.DataFrame({"no": 1.0 - yes, "yes": yes})

    named = rows().assign(y=lambda t: np.where(t["y"] > 0, "yes", "no"))
    schema = check(loaded(tmp_path, shares), named).schema
    assert (schema.binary, schema.classes) == (True, ("no", "yes"))
    assert schema.reference_error < 0.2


@pytest.mark.parametrize(
    ("make", "target", "message"),
    [
        (lambda t: (t["a"] > 0) * 1.0, lambda y: (y > 0) * 1.0, "got 0 and 1 in every row"),
        (lambda t: t["a"].map(str), lambda y: y, "predictions must be numbers|got"),
        (lambda t: t["a"], lambda y: np.where(y > 1, "a", np.where(y > 0, "b", "c")), "3 classes"),
        (lambda t: t["a"] * np.nan, lambda y: y, "The model, not the batch, is at fault"),
        (lambda t: t["a"].head(3), lambda y: y, "one prediction for each row; got 3 for 60"),
    ],
    ids=["hard", "text", "classes", "nan", "short"],
)
def test_what_is_no_prediction_is_refused_with_the_way_out(make, target, message, tmp_path):
    if message.startswith("predictions"):
        make = lambda t: t["a"].map("{}!".format)  # noqa: E731
    with pytest.raises(InvalidInputError, match=message):
        check(loaded(tmp_path, make), rows().assign(y=lambda t: target(t["y"])))


def test_named_classes_and_codes_of_a_classifier(tmp_path):
    reference = rows(200)
    for number, classes in enumerate((["bad", "good"], [1, 2])):
        labels = np.where(reference["y"] > 0, classes[1], classes[0])
        path = str(tmp_path / f"model{number}")
        model = LogisticRegression().fit(reference[["a"]], labels)
        save(model, path)
        schema = check(LoadedModel.load(path), reference.assign(y=labels)).schema
        assert schema.classes == tuple(map(str, classes))
        assert 0.0 < schema.reference_error < 0.2


def signed(kind):
    return ModelSignature(inputs=Schema([ColSpec(kind, "a")]))


def test_rows_are_cast_to_the_signature_as_serving_does(tmp_path):
    model = loaded(tmp_path, lambda t: t["a"].astype(float), signed(DataType.integer))
    reference = rows().assign(a=np.arange(60) % 7)
    found = check(model, reference.assign(extra="x"), features=["a"])
    assert found.schema.inputs == ("a",)
    assert model.predict(reference.astype({"a": "float64"}), found.schema)[5] == 5.0
    with pytest.raises(InvalidInputError, match="column 'a' must be integer as the model's") as no:
        model.predict(reference.assign(a=reference["a"] + 0.25), found.schema)
    assert "0.25" not in str(no.value)
    with pytest.raises(InvalidInputError, match="got float64 with 1 missing values"):
        model.predict(reference.assign(a=reference["a"].where(reference.index > 0)), found.schema)


def test_integers_with_missing_values_become_doubles(tmp_path):
    model = loaded(tmp_path, lambda t: t["a"].fillna(0.0), signed(DataType.double))
    whole = pd.array([*range(59), None], dtype="Int64")
    found = check(model, rows().assign(a=whole), features=["a"])
    assert np.isfinite(found.schema.reference_error)


def test_running_numbers_and_time_stamps_are_left_out_with_a_word(tmp_path):
    def make(table):
        assert len(table.columns) == 4
        return table["a"]

    reference = rows().assign(
        number=np.random.default_rng(0).permutation(60) + 500,
        stamp=1.7e9 + np.arange(60) * 3_600.0,
        day=pd.date_range("2026-01-01", periods=60).strftime("%Y-%m-%d"),
    )
    model = loaded(tmp_path, make)
    with pytest.warns(TrueupWarning, match=r"leaves out 'number' \(a running number\), 'stamp'"):
        found = check(model, reference)
    assert found.schema.features == ("a",)
    assert check(model, reference, features=["a", "stamp"]).schema.features == ("a", "stamp")
    with pytest.raises(InvalidInputError, match="features and ignore must be columns"):
        check(model, reference, ignore=["z"])


def test_packages_that_differ_from_what_the_model_asks_for_are_named(tmp_path, caplog):
    path = str(tmp_path / "model")
    asked = ["numpy<1", "pandas>=1", "trueup-of-tomorrow", 'torch<1; python_version < "3"']
    asked += ["xgboost>=1"] * (find_spec("xgboost") is not None)  # maybe as xgboost-cpu
    mlflow.pyfunc.save_model(path, python_model=Gives(two_columns), pip_requirements=asked)
    LoadedModel.load(path)
    said = [one.getMessage() for one in caplog.records if one.name == "trueup"]
    assert len(said) == 1
    assert f"numpy<1 ({np.__version__} is installed)" in said[0]
    assert "trueup-of-tomorrow (none is installed)" in said[0]
    assert "pandas" not in said[0]
    assert "torch" not in said[0]
    assert "xgboost" not in said[0]


def test_a_refusal_by_the_model_names_columns_and_types_and_shows_no_cell(tmp_path):
    def make(table):
        return table["a"].astype(float)

    model, secret = loaded(tmp_path, make), "Jane Doe"
    schema = check(model, rows().assign(b=1)).schema
    batch = rows().assign(b=2, a=lambda t: t["a"].astype(object).where(t.index != 3, secret))
    with pytest.raises(InvalidInputError) as refused:
        model.predict(batch, schema)
    assert "ValueError from the model for 'a' (object, numbers in the reference), 'b'" in str(
        refused.value
    )
    assert secret not in str(refused.value)
    assert refused.value.__cause__ is None


def test_predictions_in_a_column_make_the_check_of_the_model_that_gave_them(tmp_path):
    model = loaded(tmp_path, lambda t: 0.9 * t["a"], signed(DataType.double))
    given = GivenPredictions.of(str(tmp_path / "model"), "p")
    assert given.inputs == ("a",)
    reference = rows(200).assign(p=lambda t: 0.9 * t["a"], other=1.0)
    found, of_model = check(given, reference, predicted="p"), check(model, reference)
    assert found.schema == of_model.schema
    batch = rows(50, seed=1)
    estimate = found.consensus.estimate(batch[["a"]], 0.9 * batch["a"].to_numpy())
    assert estimate == of_model.consensus.estimate(batch[["a"]], model.predict(batch, found.schema))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("q", 0.5, "predicted must be a column of the rows"),
        ("y", 0.5, "and not the target; got 'y'"),
        ("p", "high", "values of type"),
        ("p", np.nan, "must be finite; got nan at index 0"),
        ("p", 1.0, "got 0 and 1 in every row. Give the model's numbers"),
        ("p", -2.5, r"in \[0, 1\] where labels are 0 and 1; got -2.5 at index 0. Give"),
        ("p", 70.0, r"in \[0, 1\] where labels are 0 and 1; got 70 at index 0"),
    ],
    ids=["missing", "target", "text", "nan", "hard", "logit", "percentage"],
)
def test_a_column_that_holds_no_predictions_is_refused(column, values, message):
    reference = rows().assign(p=values, y=lambda t: (t["y"] > 0) * 1.0)
    with pytest.raises(InvalidInputError, match=message):
        check(GivenPredictions(column), reference)
    with pytest.raises(InvalidInputError, match="'held-out' where predicted is given"):
        check(GivenPredictions("p"), reference, predicted="p", reference_is="train")


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"row_id": "p"}, "predicted must be another column than target, row_id and time; got 'p'"),
        ({"time": "p"}, "predicted must be another column than target, row_id and time; got 'p'"),
        ({"target": "p"}, "predicted must be another column than target, row_id and time; got 'p'"),
        ({"prediction": "z"}, "prediction must be left out where predicted is given; got 'z'"),
    ],
    ids=["row id", "time", "target", "prediction"],
)
def test_a_column_of_predictions_is_no_other_column_and_no_output(wishes, message):
    with pytest.raises(InvalidInputError, match=message):
        Wishes(**{"target": "y", "predicted": "p", **wishes})


def test_the_row_id_of_the_reference_holds_no_predictions_of_a_batch():
    reference = rows().assign(p=lambda t: 0.9 * t["a"], id=range(60))
    schema = check(GivenPredictions("p"), reference, predicted="p", row_id="id").schema
    with pytest.raises(InvalidInputError, match="not the row id, and not the target; got 'id'"):
        GivenPredictions("id").predict(reference, schema)


def test_of_given_predictions_the_positive_class_is_not_guessed():
    reference = rows().assign(p=0.4, y=lambda t: np.where(t["y"] > 0, "churn", "stay"))
    with pytest.raises(InvalidInputError, match=r"target must be numbers .* \['churn', 'stay'\]"):
        check(GivenPredictions("p"), reference, predicted="p")
    digits = reference.assign(y=lambda t: np.where(t["y"] == "churn", "1", "0"))
    assert check(GivenPredictions("p"), digits, predicted="p").schema.classes == ("0", "1")


def test_a_model_that_lacks_the_class_of_the_reference_is_refused_in_words(tmp_path):
    reference = rows(200).assign(p=0.4, y=lambda t: np.where(t["y"] > 0, "1", "0"))
    given = GivenPredictions("p", inputs=("a",))
    schema = check(given, reference, predicted="p").schema
    named = reference["y"].map({"0": "churn", "1": "stay"})
    for number, labels in enumerate((named, reference["y"].astype(float))):
        path = str(tmp_path / f"model{number}")
        model = LogisticRegression().fit(reference[["a"]], labels)
        save(model, path)
    found = LoadedModel.load(path).predict(reference, schema)
    assert np.array_equal(found, model.predict_proba(reference[["a"]])[:, 1])
    with pytest.raises(InvalidInputError, match=r"know the class '1' .* \['churn', 'stay'\]"):
        LoadedModel.load(str(tmp_path / "model0")).predict(reference, schema)
