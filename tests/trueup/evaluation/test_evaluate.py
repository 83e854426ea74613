"""Algorithm 1: numbers by hand, and invariants over every loss with every split."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.special import expit, softmax
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    mean_tweedie_deviance,
)
from tests.trueup.closeness import assert_close

from trueup import (
    CrossFit,
    HoldOut,
    InSample,
    Rolling,
    calibrated_brier_score,
    calibrated_log_loss,
    calibrated_mean_squared_error,
    calibrated_poisson_deviance,
    evaluate,
)
from trueup.errors import InvalidInputError, UndefinedMetricError

N = 600


@dataclass(frozen=True)
class Data:
    """Rows of one task, with scikit-learn's metric and our shortcut."""

    loss: str
    y_true: Any
    y_pred: Any
    sklearn_metric: Any
    shortcut: Any


def calibrated(loss):
    """Return the calibrated metric of a loss that has no function of its own."""
    return lambda *columns, **options: evaluate(*columns, loss=loss, **options).calibrated


def make_data():
    rng = np.random.default_rng(0)
    logit = rng.normal(-0.5, 1.2, N)
    label = (rng.random(N) < expit(logit - 0.4)).astype(int)
    table = softmax(rng.normal(size=(N, 4)), axis=1)
    classes = np.array([rng.choice(4, p=p) for p in table**1.3 / (table**1.3).sum(1)[:, None]])
    target = rng.normal(size=N)
    rate = rng.gamma(2.0, size=N)
    count = rng.poisson(1.2 * rate)
    return {
        "binary": Data("log_loss", label, expit(logit), log_loss, calibrated_log_loss),
        "multiclass": Data("log_loss", classes, table, log_loss, calibrated_log_loss),
        "brier": Data("brier_score", label, expit(logit), brier_score_loss, calibrated_brier_score),
        "regression": Data(
            "mean_squared_error",
            target,
            target + rng.normal(0.3, 0.5, N),
            mean_squared_error,
            calibrated_mean_squared_error,
        ),
        "counts": Data(
            "poisson_deviance", count, rate, mean_poisson_deviance, calibrated_poisson_deviance
        ),
        "multi_brier": Data(
            "brier_score", classes, table, brier_score_loss, calibrated("brier_score")
        ),
        "sizes": Data(
            "gamma_deviance",
            rng.gamma(1.0, rate),
            rate,
            mean_gamma_deviance,
            calibrated("gamma_deviance"),
        ),
        "costs": Data(
            "tweedie_deviance",
            count * rng.gamma(1.0, size=N),
            rate,
            partial(mean_tweedie_deviance, power=1.5),
            calibrated("tweedie_deviance"),
        ),
    }


DATA = make_data()
SPLITS = [CrossFit(5), CrossFit(2, salt=1), HoldOut(0.3), InSample(), Rolling(50)]
TIMES = np.arange(N) % 250
EVERY = [
    pytest.param(data, split, id=f"{name}-{split!r}")
    for name, data in DATA.items()
    for split in SPLITS
]
every_loss_and_split = pytest.mark.parametrize(("data", "split"), EVERY)
of_classes = pytest.mark.parametrize(
    ("data", "split"), [case for case in EVERY if case.id.startswith(("binary", "multi", "brier"))]
)
minimised_by_its_bias = pytest.mark.parametrize(
    "data", [data for name, data in DATA.items() if "brier" not in name]
)


def run(data, split, rows=slice(None), **arguments):
    ids = arguments.pop("row_id", np.arange(N)[rows])
    return evaluate(
        data.y_true[rows],
        data.y_pred[rows],
        loss=data.loss,
        split=split,
        row_id=ids,
        times=TIMES[rows],
        **arguments,
    )


@every_loss_and_split
def test_vanilla_equals_scikit_learn(data, split):
    expected = data.sklearn_metric(data.y_true, data.y_pred)
    assert run(data, split).vanilla == pytest.approx(expected, rel=1e-12)


@every_loss_and_split
def test_weighted_vanilla_equals_scikit_learn(data, split):
    weight = np.random.default_rng(1).uniform(0.2, 2.0, N)
    expected = data.sklearn_metric(data.y_true, data.y_pred, sample_weight=weight)
    found = run(data, split, sample_weight=weight).vanilla
    assert found == pytest.approx(expected, rel=1e-12)


@every_loss_and_split
def test_order_of_rows_does_not_matter(data, split):
    order = np.random.default_rng(2).permutation(N)
    shuffled = run(data, split, rows=order)
    assert_close(run(data, split), shuffled)
    assert run(data, split).fingerprint == shuffled.fingerprint


@every_loss_and_split
def test_integer_weights_equal_repeated_rows(data, split):
    repeats = np.random.default_rng(3).integers(0, 4, N)
    rows = np.repeat(np.arange(N), repeats)
    weighted = run(data, split, sample_weight=repeats.astype(float))
    repeated = run(data, split, rows=rows)
    assert_close(
        weighted, repeated, but=("fingerprint", "n", "n_scored", "standard_errors"), rel=1e-10
    )


@every_loss_and_split
def test_long_input_equals_short_input(data, split):
    rows = np.tile(np.arange(N), 40)
    arguments = {"but": ("fingerprint", "n", "n_scored", "standard_errors"), "rel": 1e-9}
    assert_close(run(data, split), run(data, split, rows=rows), **arguments)


@every_loss_and_split
def test_scale_of_weights_does_not_matter(data, split):
    weight = np.random.default_rng(4).uniform(0.2, 2.0, N)
    assert_close(
        run(data, split, sample_weight=weight), run(data, split, sample_weight=8.0 * weight)
    )


@every_loss_and_split
def test_unit_weights_equal_no_weights(data, split):
    assert_close(run(data, split), run(data, split, sample_weight=np.ones(N)))


@every_loss_and_split
@pytest.mark.parametrize("kind", ["pandas", "polars", "torch", "list"])
def test_kind_of_container_does_not_matter(data, split, kind):
    table = data.y_pred.ndim == 2
    wrap = {
        "pandas": (pd.Series, pd.DataFrame),
        "polars": (pl.Series, pl.DataFrame),
        "torch": (torch.tensor, torch.tensor),
        "list": (np.ndarray.tolist, np.ndarray.tolist),
    }[kind]
    wrapped = replace(data, y_true=wrap[0](data.y_true), y_pred=wrap[table](data.y_pred))
    found = evaluate(
        wrapped.y_true, wrapped.y_pred, loss=data.loss, split=split, times=wrap[0](TIMES)
    )
    assert found == run(data, split)


@of_classes
def test_string_labels_equal_indices(data, split):
    n_classes = data.y_true.max() + 1
    names = np.array(["one", "two", "three", "four"])[:n_classes]
    named = run(replace(data, y_true=names[data.y_true]), split, labels=list(names))
    assert named == run(data, split)


@every_loss_and_split
def test_scored_value_is_the_calibrated_one_plus_the_bias_cost(data, split):
    result = run(data, split)
    total = result.calibrated + result.bias_cost
    assert total == pytest.approx(result.vanilla_on_scored_rows, rel=1e-15)
    if isinstance(split, CrossFit | InSample):
        assert result.n_scored == result.n == N
        assert result.vanilla_on_scored_rows == pytest.approx(result.vanilla, rel=1e-15)
    else:
        assert 0 < result.n_scored < N


@every_loss_and_split
def test_a_bias_in_the_predictions_is_taken_out(data, split):
    shifted = {
        "mean_squared_error": lambda p: p + 0.7,
        "poisson_deviance": lambda p: p * 1.9,
        "gamma_deviance": lambda p: p * 1.9,
        "tweedie_deviance": lambda p: p * 1.9,
    }.get(data.loss, lambda p: expit(np.log(p) - np.log1p(-p) + 0.7))
    if data.y_pred.ndim == 2:
        moved = data.y_pred * np.array([1.0, 2.0, 0.5, 1.5])
        moved = moved / moved.sum(axis=1)[:, None]
    else:
        moved = shifted(data.y_pred)
    before, after = run(data, split), run(replace(data, y_pred=moved), split)
    assert after.calibrated == pytest.approx(before.calibrated, rel=1e-9)
    assert abs(after.vanilla - before.vanilla) > 1e-3


@of_classes
@pytest.mark.parametrize("n", [0, 1])
def test_one_row_or_none_is_undefined(data, split, n):
    labels = range(4) if data.y_pred.ndim == 2 else None
    with pytest.raises(UndefinedMetricError):
        run(data, split, rows=slice(0, n), labels=labels)


@pytest.mark.parametrize("name", ["regression", "counts"])
@pytest.mark.parametrize("split", [split for split in SPLITS if split != InSample()], ids=repr)
def test_one_row_cannot_be_fitted_and_scored(name, split):
    with pytest.raises(UndefinedMetricError):
        run(DATA[name], split, rows=slice(3, 4))


def test_one_row_in_sample_has_no_standard_error():
    result = run(DATA["regression"], InSample(), rows=slice(0, 1))
    assert result.calibrated == 0.0
    assert np.isnan(result.standard_errors).all()


@every_loss_and_split
def test_nan_is_refused_everywhere(data, split):
    y_pred = data.y_pred.copy()
    y_pred[7] = np.nan
    with pytest.raises(InvalidInputError, match="y_pred must be finite; got nan at index"):
        run(replace(data, y_pred=y_pred), split)


@minimised_by_its_bias
def test_in_sample_bias_cost_is_never_negative(data):
    assert run(data, InSample()).bias_cost >= 0.0


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_shortcut_is_the_calibrated_value(data):
    expected = evaluate(data.y_true, data.y_pred, loss=data.loss, split=HoldOut(0.4))
    assert data.shortcut(data.y_true, data.y_pred, split=HoldOut(0.4)) == expected.calibrated


def test_logits_equal_their_probabilities():
    data = DATA["binary"]
    logit = np.log(data.y_pred) - np.log1p(-data.y_pred)
    assert_close(evaluate(data.y_true, data.y_pred), evaluate(data.y_true, y_logit=logit))
    data = DATA["multiclass"]
    logit = np.log(data.y_pred) + 3.0
    assert_close(evaluate(data.y_true, data.y_pred), evaluate(data.y_true, y_logit=logit))


@pytest.mark.parametrize("split", [CrossFit(), InSample()], ids=repr)
@pytest.mark.parametrize("wrap", [np.asarray, np.ndarray.tolist, pd.DataFrame, torch.tensor])
def test_long_input_of_several_classes_is_scored_as_short_input_is(split, wrap):
    data, repeats = DATA["multiclass"], 36
    ids = np.tile(np.arange(N), repeats)
    rows = np.tile(data.y_pred, (repeats, 1))
    found = evaluate(np.tile(data.y_true, repeats), wrap(rows), split=split, row_id=ids)
    expected = run(data, split)
    assert_close(expected, found, but=("fingerprint", "n", "n_scored", "standard_errors"))


def test_far_logits_stay_finite():
    logit = np.r_[-700.0, 700.0, np.linspace(-3.0, 3.0, 98)]
    result = evaluate([0, 1] * 50, y_logit=logit)
    assert np.isfinite([result.vanilla, result.calibrated]).all()


def test_squared_error_by_hand():
    result = evaluate([1.0, 2.0, 6.0], [0.0, 0.0, 0.0], loss="mean_squared_error", split=InSample())
    assert result.bias_term == 3.0
    assert result.vanilla == pytest.approx(41.0 / 3.0)
    assert result.calibrated == pytest.approx(14.0 / 3.0)
    assert result.bias_cost == pytest.approx(9.0)
    sd = np.std([4.0, 1.0, 9.0], ddof=1)
    assert result.standard_errors.calibrated == pytest.approx(sd / np.sqrt(3.0))


def test_log_loss_by_hand():
    result = evaluate([1, 0, 0, 0], np.full(4, 0.5), split=InSample())
    assert result.bias_term == pytest.approx(np.log(3.0))
    assert result.vanilla == pytest.approx(np.log(2.0))
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert result.calibrated == pytest.approx(entropy)


def test_rotation_by_hand():
    y_true, fold = np.arange(6.0), CrossFit(2).groups(np.arange(6, dtype=np.uint64), None)
    result = evaluate(y_true, np.zeros(6), loss="mean_squared_error", split=CrossFit(2))
    biases = [y_true[fold != part].mean() for part in (0, 1)]
    assert result.fold_bias_terms == pytest.approx(biases)
    assert result.bias_term == 2.5
    expected = np.mean((y_true - np.take(biases, fold)) ** 2)
    assert result.calibrated == pytest.approx(expected)


def test_rolling_by_hand():
    y_true, times = np.array([1.0, 3.0, 5.0, 7.0]), np.array([0, 0, 1, 2])
    arguments = {"loss": "mean_squared_error", "split": Rolling(1), "times": times}
    result = evaluate(y_true, np.zeros(4), **arguments)
    assert result.fold_bias_terms == (2.0, 5.0)
    assert result.calibrated == pytest.approx(((5.0 - 2.0) ** 2 + (7.0 - 5.0) ** 2) / 2.0)


def test_many_strings_as_ids_give_the_same_partition_in_any_order():
    data = DATA["binary"]
    ids = np.array([f"user-{i}" for i in range(N)])
    order = np.random.default_rng(5).permutation(N)
    first = run(data, CrossFit(), row_id=ids)
    second = run(data, CrossFit(), rows=order, row_id=ids[order])
    assert_close(first, second)
    assert first.fingerprint == second.fingerprint != run(data, CrossFit()).fingerprint


def test_fields_may_be_a_data_frame():
    data = DATA["binary"]
    frame = pd.DataFrame({"a": np.arange(N) % 3, "b": np.arange(N) % 7})
    result = evaluate(data.y_true, data.y_pred, fields=frame)
    assert {name: field.n_levels for name, field in result.fields.items()} == {"a": 3, "b": 7}
    assert evaluate(data.y_true, data.y_pred, fields={}).fields == {}
