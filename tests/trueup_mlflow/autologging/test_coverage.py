"""Each run says what it gained: one line of the terminal, and one tag."""

from __future__ import annotations

import mlflow
import pytest
import torch
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from torch.nn import functional

from trueup_mlflow import log_evaluation
from trueup_mlflow.autologging.coverage import explain, reason_in
from trueup_mlflow.compare.stored_run import StoredRun
from trueup_mlflow.seeds.log_seeds import log_seed_summary
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


def log_steps(losses, penalties, steps):
    """Log sums of losses that were returned and of penalties that nobody watches."""
    with mlflow.start_run() as run:
        for (y, p), penalty, step in zip(losses, penalties, steps, strict=True):
            mlflow.log_metric("total", log_loss(y, p) + penalty, step=step)
    return run.info.run_id


@pytest.mark.parametrize(
    ("penalties", "steps", "share"),
    [
        ([0.0, 0.0, 0.1, 0.2, 0.3], range(5), "a twin at 2 of 5 steps"),
        ([0.1, 0.0, 0.2], range(3), "a twin at 1 of 3 steps"),
        ([0.1, 0.2, 0.0], range(3), "a twin at 1 of 3 steps"),
        ([0.0, 0.1, 0.2], [None] * 3, "a twin at 1 of 3 values"),
    ],
)
def test_twins_of_some_steps_are_counted_with_one_reason_for_the_others(
    client, autologging, binary, penalties, steps, share
):
    losses = [(binary.y, binary.p * (0.9 + 0.01 * index)) for index in range(len(penalties))]
    run_id = log_steps(losses, penalties, steps)
    tag = client.get_run(run_id).data.tags[COVERAGE_TAG]
    assert tag.startswith(f"{share} of total: no watched loss, and no mean over")
    assert tag.count("no watched loss") == 1
    assert "log_evaluation" in tag
    assert reason_in(tag, "total") is None  # which is for metrics without any twin


@pytest.mark.parametrize(
    ("penalties", "steps", "is_late"),
    [
        ([0.0, 0.1], [0, 1], True),
        ([0.0, 0.1], [None, None], True),
        ([0.1, 0.0], [0, 1], False),
        ([0.1, 0.0], [None, None], False),
        ([0.0, 0.1], [1, 0], False),  # MLflow shows the greatest step
        ([0.0, 0.1, 0.0], [0, 0, 0], False),
    ],
)
def test_twin_is_read_only_where_it_is_of_the_last_value(
    client, autologging, binary, penalties, steps, is_late
):
    losses = [(binary.y, binary.p * (0.9 + 0.01 * index)) for index in range(len(penalties))]
    run_id = log_steps(losses, penalties, steps)
    run = StoredRun.of(client.get_run(run_id))
    assert ("calibrated_total" not in run.metrics) is is_late
    assert set(run.late) == (
        {"calibrated_total", "bias_cost_total", "bias_term_total"} if is_late else set()
    )


def test_value_that_is_logged_again_at_its_step_keeps_its_twin(client, autologging, binary):
    with mlflow.start_run() as run:
        evaluation = log_evaluation(binary.y, binary.p, prefix="val_")
        mlflow.log_metric("val_log_loss", evaluation.vanilla)
    assert "calibrated_val_log_loss" in StoredRun.of(client.get_run(run.info.run_id)).metrics


def test_metric_that_could_not_be_logged_has_no_twin(client, autologging, binary):
    with mlflow.start_run() as run:
        with pytest.warns(UserWarning, match="bad key!_log_loss was not logged: writing failed"):
            log_evaluation(binary.y, binary.p, prefix="bad key!_")
        with pytest.raises(mlflow.MlflowException):
            mlflow.log_metric("another bad key!", log_loss(binary.y, binary.p))
        with pytest.warns(UserWarning, match="more than one class"):
            log_evaluation([0] * len(binary.y), binary.p, prefix="one_")
    tag = client.get_run(run.info.run_id).data.tags[COVERAGE_TAG]
    assert "twin" not in tag
    assert "none of bad key__log_loss: writing failed" in tag
    assert "none of one_log_loss: y_true must hold more than one class" in tag
    assert "another bad key!" not in tag


def test_what_trueup_writes_itself_needs_no_twin(client, autologging, binary, capsys):
    with mlflow.start_run() as parent:
        for seed in range(3):
            with mlflow.start_run(nested=True):
                mlflow.log_metric("loss", log_loss(binary.y, binary.p * (0.9 + 0.01 * seed)))
        log_seed_summary(parent.info.run_id)
    run = client.get_run(parent.info.run_id)
    assert run.data.metrics["n_seeds"] == 3.0
    assert "none of" not in run.data.tags.get(COVERAGE_TAG, "")
    assert "n_seeds" not in capsys.readouterr().err
