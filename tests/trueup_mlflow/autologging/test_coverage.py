"""Each run says what it gained: one line of the terminal, and one tag."""

from __future__ import annotations

import mlflow
import pytest
import torch
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from torch.nn import functional

from trueup_mlflow.autologging.coverage import explain
from trueup_mlflow.write.items import COVERAGE_TAG


def test_run_says_which_metrics_have_twins_and_which_have_none(client, autologging, binary, capsys):
    loss = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", loss)
        mlflow.log_metrics(
            {"accuracy": accuracy_score(binary.y, binary.p > 0.5), "shown": round(loss, 4)}
        )
        mlflow.log_metric("training_loss", loss)
    tag = client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    assert tag.startswith("twins of loss; none of accuracy: ")
    assert "none of shown: it is a watched loss rounded to 4 digits" in tag
    assert "none of training_loss: keys that begin with training_" in tag
    assert "trueup_mlflow.log_evaluation" in tag
    assert capsys.readouterr().err == f"trueup: run {run.info.run_id}: {tag}\n"


def test_number_of_few_digits_is_said_to_be_one_and_a_reason_ends_with_one_period(
    client, autologging, binary
):
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", log_loss(binary.y, binary.p))
        mlflow.log_metric("share", 0.4242)
        mlflow.log_metric("even", brier_score_loss(binary.y, [0.5] * len(binary.y)))
        with pytest.warns(UserWarning, match="more than one class"):
            mlflow.log_metric("one", log_loss([1] * 60, binary.p[:60], labels=[0, 1]))
    tag = client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    assert "none of share, even: no watched loss, or one of four significant digits or fewer" in tag
    assert "none of one: y_true must hold more than one class; " in tag
    assert "Pass rows of every class. For a loss" in tag


def test_metric_beside_a_cross_validation_may_be_none_of_its(client, autologging, binary):
    module = pytest.importorskip("lightgbm")
    loss = log_loss(binary.y, binary.p)
    params = {"objective": "binary", "verbose": -1, "num_threads": 1}
    module.cv(params, module.Dataset(binary.p.reshape(-1, 1), binary.y), 2, nfold=3)
    with mlflow.start_run() as run:
        mlflow.log_metrics({"loss": loss, "other": 2.0 * loss})
    tag = client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    assert tag.startswith("twins of loss; none of other: lightgbm.cv was called, which is not")
    assert "; else no watched loss, and no mean" in tag


def test_run_without_metrics_says_nothing(client, autologging, capsys):
    with mlflow.start_run() as run:
        mlflow.log_param("a", 1)
    assert COVERAGE_TAG not in client.get_run(run.info.run_id).data.tags
    assert capsys.readouterr().err == ""


def test_loss_of_training_alone_says_what_to_do(client, autologging):
    logits = torch.zeros(10, 2, requires_grad=True)
    loss = functional.cross_entropy(logits, torch.zeros(10, dtype=torch.long))
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", loss.item() + 0.01)
    assert "torch.no_grad()" in client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (0.6548, "rounded to 4 digits"),
        (-0.654812345, "minus a watched loss"),
        (0.6548124, "near a watched loss"),
        (0.6548123359680176, "rounded to float32"),
        (1.924780, "no watched loss"),
        (0.7, "no watched loss"),
        (0.534, "rounded to 4 digits"),  # 0.5340
        (0.5, "rounded to 3 digits"),  # 0.500
        (12.0, "rounded to 4 digits"),
        (1234.6, "rounded to 1 digit:"),
        (3.0, "no watched loss"),
    ],
)
def test_explanation_names_what_was_done_to_the_number(number, reason):
    seen = [0.1, 0.654812345, 0.53402871, 0.49981234, 12.000001, 1234.5678, 3.014]
    assert reason in explain(number, seen)


@pytest.mark.parametrize("digits", [3, 4, 6])
def test_advice_to_log_a_rounded_loss_unrounded_brings_the_twin(
    client, autologging, binary, digits
):
    loss = log_loss(binary.y, binary.p)
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", round(loss, digits), step=0)
    assert f"rounded to {digits} digits" in client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    with mlflow.start_run() as again:
        mlflow.log_metric("loss", loss)
    assert client.get_run(again.info.run_id).data.tags[COVERAGE_TAG] == "twins of loss."


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_value_of_a_cross_validation_says_that_it_is_not_covered(
    client, autologging, binary, library
):
    module = pytest.importorskip(library)
    rows = binary.p.reshape(-1, 1)
    with mlflow.start_run() as run:
        if library == "lightgbm":
            params = {"objective": "binary", "verbose": -1, "num_threads": 1}
            means = module.cv(params, module.Dataset(rows, binary.y), 2, nfold=3)
        else:
            params = {"objective": "binary:logistic", "nthread": 1}
            means = module.cv(params, module.DMatrix(rows, binary.y), 2, nfold=3, as_pandas=False)
        mlflow.log_metric("loss", next(iter(means.values()))[-1])
    tag = client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    assert f"none of loss: {library}.cv was called, which is not covered" in tag
