"""What is read, what is warned of, and the message that each bad input gets."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate
from trueup.errors import (
    InvalidInputError,
    TrueupWarning,
    UndefinedMetricError,
    UnscorableInputError,
)
from trueup.read.rows import read_rows

N = 60
Y = np.tile([0, 1, 1], N // 3)
P = np.tile([0.3, 0.6, 0.8], N // 3)
CLASSES = np.tile([0, 1, 2], N // 3)
P3 = np.tile([0.2, 0.3, 0.5], (N, 1))
NAN, INF = float("nan"), float("inf")


def with_first(values, value):
    return np.r_[value, np.asarray(values, dtype=float)[1:]]


MSE, COUNTS, BRIER = "mean_squared_error", "poisson_deviance", "brier_score"
RANGE, FINITE = r"y_pred must be in \[0, 1\]", "must be finite; got"

BAD = [
    # shapes
    ("scalar y_true", {"y_true": 1}, r"y_true must be one-dimensional; got shape \(\)"),
    ("no y_true", {"y_true": None}, r"y_true must be one-dimensional; got shape \(\)"),
    ("2-D y_true", {"y_true": np.zeros((N, 2))}, r"y_true must be one-dim.* \(60, 2\)"),
    ("ragged y_true", {"y_true": [[0], [1, 1]]}, "y_true must have rows of equal length"),
    ("ragged y_pred", {"y_pred": [[0.5], [0.5, 0.5]]}, "y_pred must have rows of equal length"),
    ("scalar y_pred", {"y_pred": 0.5}, r"y_pred must have one or two dimensions; got shape \(\)"),
    ("3-D y_pred", {"y_pred": np.zeros((N, 1, 1))}, r"y_pred must have one or two dimensions"),
    ("short y_pred", {"y_pred": P[:-1]}, r"as many rows as y_true \(60\); got 59"),
    ("no y_pred", {"y_pred": None}, "y_pred must be given, or y_logit in its place; got neither"),
    ("both", {"y_logit": P}, "y_pred must be given, or y_logit in its place; got both"),
    ("short y_logit", {"y_pred": None, "y_logit": P[:-1]}, r"y_logit must have as many .* got 59"),
    ("4 columns for Brier", {"y_pred": np.full((N, 4), 0.25), "loss": BRIER}, "one-dimensional"),
    ("2 columns for MSE", {"y_pred": np.zeros((N, 2)), "loss": MSE}, "one-dimensional"),
    (
        "3 logit columns for Brier",
        {"y_pred": None, "y_logit": P3, "loss": BRIER},
        "one-dimensional",
    ),
    # missing and infinite values
    ("NaN in y_pred", {"y_pred": with_first(P, NAN)}, f"y_pred {FINITE} nan at index 0"),
    ("inf in y_pred", {"y_pred": with_first(P, INF)}, f"y_pred {FINITE} inf at index 0"),
    ("None in y_pred", {"y_pred": [None, *P[1:]]}, "got 1 missing value in y_pred, first"),
    ("masked y_pred", {"y_pred": np.ma.masked_less(P, 0.5)}, "must not hold masked values"),
    ("NaN in y_true", {"y_true": with_first(Y, NAN)}, f"y_true {FINITE} nan at index 0"),
    ("NaN in targets", {"y_true": with_first(Y, NAN), "loss": MSE}, f"y_true {FINITE} nan"),
    ("inf in targets", {"y_true": with_first(Y, -INF), "loss": MSE}, f"y_true {FINITE} -inf"),
    (
        "inf in y_logit",
        {"y_pred": None, "y_logit": with_first(P, INF)},
        f"y_logit {FINITE} inf at index 0",
    ),
    ("NaN in a table", {"y_pred": np.where(P3 == 0.5, NAN, P3)}, r"nan at index \(0, 2\)"),
    (
        "None in named labels",
        {"y_true": ["a", None, "b"] * 20, "labels": ["a", "b"]},
        "got 20 missing values in y_true, first at row 1",
    ),
    # ranges
    ("p of 1.2", {"y_pred": with_first(P, 1.2)}, rf"{RANGE}; got 1.2 at index 0. .* as y_logit"),
    ("p of -0.1", {"y_pred": with_first(P, -0.1)}, rf"{RANGE}; got -0.1 at index 0"),
    ("logits as y_pred", {"y_pred": np.linspace(-3, 3, N)}, RANGE),
    ("negative p in a table", {"y_pred": np.tile([-0.1, 1.1], (N, 1))}, RANGE),
    ("rows sum to 0.9", {"y_pred": np.tile([0.4, 0.5], (N, 1))}, "must sum to 1 .* got 0.9"),
    ("3 columns sum to 2", {"y_true": CLASSES, "y_pred": 2 * P3}, r"must sum to 1 .* got 2.0"),
    ("label 2", {"y_true": with_first(Y, 2)}, "y_true must be 0 or 1; got 2.0 at index 0"),
    ("label -1", {"y_true": 2 * Y - 1}, "y_true must be 0 or 1; got -1.0 at index 0"),
    ("soft label", {"y_true": with_first(Y, 0.5)}, "y_true must be 0 or 1; got 0.5"),
    (
        "rate of 0",
        {"y_pred": with_first(P, 0.0), "loss": COUNTS},
        "y_pred must be positive; got 0.0",
    ),
    (
        "negative count",
        {"y_true": with_first(Y, -1), "loss": COUNTS},
        "y_true must not be negative",
    ),
    # types
    ("text predictions", {"y_pred": ["0.5"] * N}, "y_pred must be numbers; got dtype <U3"),
    ("complex predictions", {"y_pred": P + 0j}, "y_pred must be numbers; got dtype complex128"),
    ("dates as predictions", {"y_pred": P.astype("M8[D]")}, "numbers; got dtype datetime64"),
    ("text labels", {"y_true": ["no", "yes", "yes"] * 20}, r"labels=\[negative, positive\]"),
    ("text targets", {"y_true": ["1"] * N, "loss": MSE}, "y_true must be numbers; got dtype"),
    # labels
    ("three labels", {"labels": ["a", "b", "c"]}, "labels must name two classes, .* last; got"),
    ("equal labels", {"labels": [1, 1]}, "labels must be as many as"),
    ("wrong names", {"labels": ["no", "yes"]}, r"must be one of \['no', 'yes'\]; got 0 at index"),
    ("labels of targets", {"labels": [0, 1], "loss": MSE}, "labels must be left out with loss"),
    ("missing class", {"y_true": CLASSES % 2, "y_pred": P3}, r"distinct values of y_true .* \(3\)"),
    ("unknown class", {"y_true": CLASSES, "y_pred": P3, "labels": [0, 1, 5]}, "got 2 at index 2"),
    # weights
    ("short weights", {"sample_weight": np.ones(N - 1)}, r"sample_weight must have shape \(60,\)"),
    ("negative weight", {"sample_weight": with_first(P, -1)}, "must not be negative; got -1.0"),
    ("zero weights", {"sample_weight": np.zeros(N)}, "must hold a positive weight; got zeros"),
    ("NaN weight", {"sample_weight": with_first(P, NAN)}, "sample_weight must be finite; got nan"),
    ("text weights", {"sample_weight": ["1"] * N}, "sample_weight must be numbers"),
    ("2-D weights", {"sample_weight": np.ones((N, 2))}, "sample_weight must be one-dimensional"),
    # row ids and times
    ("short row_id", {"row_id": [1, 2]}, r"row_id must have shape \(60,\); got \(2,\)"),
    ("float row_id", {"row_id": P}, "row_id must be integers or strings; got dtype float64"),
    ("2-D row_id", {"row_id": np.zeros((N, 2), int)}, "row_id must be one-dimensional"),
    ("no times", {"split": Rolling(1)}, "times must be given with Rolling; got None"),
    ("short times", {"split": Rolling(1), "times": [1]}, r"times must have shape \(60,\)"),
    ("text times", {"split": Rolling(1), "times": ["a"] * N}, "times must be numbers or datetimes"),
    ("NaN time", {"split": Rolling(1), "times": with_first(P, NAN)}, "times must not be missing"),
    (
        "NaT time",
        {"split": Rolling("month"), "times": np.r_[np.datetime64("NaT"), np.zeros(N - 1, "M8[D]")]},
        "times must not be missing; got NaT at index 0",
    ),
    ("numbers by month", {"split": Rolling("month"), "times": P}, "times must be datetimes with"),
    # losses, splits and fields
    ("unknown loss", {"loss": "logloss"}, "loss must be one of .* got 'logloss'"),
    ("split by name", {"split": "crossfit"}, "split must be a Split; got 'crossfit'"),
    (
        "y_logit of MSE",
        {"y_pred": None, "y_logit": P, "loss": MSE},
        "y_logit must go with a loss of",
    ),
    ("fields as a list", {"fields": ["a"]}, "fields must be a mapping .* got list"),
    ("short field", {"fields": {"site": ["a"]}}, r"site must have as many rows .* \(60\); got 1"),
    ("fields of MSE", {"loss": MSE, "fields": {"site": Y}}, "fields must go with a loss of binary"),
]

UNDEFINED = [
    ("empty", {"y_true": [], "y_pred": []}, "y_true must hold at least one row; got 0"),
    ("one class", {"y_true": np.zeros(N)}, r"all labels are the same \(0\)"),
    ("one class in sample", {"y_true": np.ones(N), "split": InSample()}, r"the same \(1\)"),
    (
        "one positive",
        {"y_true": np.eye(1, N)[0], "split": CrossFit()},
        r"CrossFit\(folds=5, salt=0\) fits the bias; got 0 of class 1.* split=InSample\(\)",
    ),
    ("few rows in HoldOut", {"split": HoldOut()}, r"at least 10 rows .* split=InSample\(\)"),
    (
        "one class has no weight",
        {"sample_weight": Y.astype(float), "split": InSample()},
        r"got 40 rows in which all labels are the same \(1\)",
    ),
    ("zero counts", {"y_true": np.zeros(N), "loss": COUNTS}, "must hold a positive count"),
    (
        "one row has the weight",
        {"y_true": P, "sample_weight": np.eye(1, N)[0], "loss": MSE},
        "must leave rows to fit the bias on; got none",
    ),
    (
        "no row to fit on",
        {"y_true": P[:1], "y_pred": P[:1], "loss": MSE},
        r"split must leave rows to fit the bias on; got none with CrossFit",
    ),
    (
        "no row to score",
        {"y_true": P[:1], "y_pred": P[:1], "loss": MSE, "split": HoldOut(0.9999999)},
        "split must leave rows to score; got none",
    ),
]


def run(arguments):
    return evaluate(**{"y_true": Y, "y_pred": P, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"), [pytest.param(*case[1:], id=case[0]) for case in BAD]
)
def test_bad_input_is_refused_with_a_message_that_helps(arguments, message):
    with pytest.raises(InvalidInputError, match=message) as error:
        run(arguments)
    assert_reads_as_promised(str(error.value))


@pytest.mark.parametrize(
    ("arguments", "message"), [pytest.param(*case[1:], id=case[0]) for case in UNDEFINED]
)
def test_valid_input_without_a_metric_is_undefined(arguments, message):
    with pytest.raises(UndefinedMetricError, match=message) as error:
        run(arguments)
    assert_reads_as_promised(str(error.value))


def test_no_fields_go_with_every_loss():
    assert run({"loss": MSE, "fields": {}}).fields == {}


def test_what_cannot_be_scored_is_invalid_input_and_undefined():
    with pytest.raises(UnscorableInputError, match="y_pred must be finite; got nan at index 0"):
        run({"y_pred": np.full(N, np.nan)})


def test_no_rows_are_invalid_input_too():
    with pytest.raises(InvalidInputError, match="y_true must hold at least one row; got 0"):
        run({"y_true": [], "y_pred": []})


def assert_reads_as_promised(message):
    rule, _, rest = message.partition("; got ")
    assert " must " in rule
    assert rest.rstrip().endswith(".")
    assert ". " in rest, "the message must say how to fix it"


def test_table_of_bad_inputs_holds_forty_cases_with_names_of_their_own():
    names = [case[0] for case in BAD + UNDEFINED]
    assert len(names) == len(set(names))
    assert len(names) >= 40


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "pandas": pd.Series,
    "pandas nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas with an odd index": lambda values: pd.Series(values, index=range(100, 100 + N)),
    "pandas frame of one column": lambda values: pd.DataFrame({"a": values}),
    "polars": pl.Series,
    "torch": lambda values: torch.tensor(np.asarray(values)),
    "column vector": lambda values: np.asarray(values)[:, None],
    "object array": lambda values: np.array(list(values), dtype=object),
    "strided": lambda values: np.repeat(values, 2)[::2],
    "read-only": lambda values: np.frombuffer(np.asarray(values).tobytes(), values.dtype),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_result_does_not_depend_on_the_container(container):
    wrap = CONTAINERS[container]
    weight = 1.0 + P
    expected = evaluate(Y, P, sample_weight=weight, row_id=np.arange(N) * 7)
    found = evaluate(wrap(Y), wrap(P), sample_weight=wrap(weight), row_id=np.arange(N) * 7)
    assert found == expected


@pytest.mark.parametrize("kind", [bool, np.bool_, np.int8, float])
def test_objects_that_are_plainly_0_and_1_are_labels(kind):
    y_true = np.array([kind(label) for label in Y], dtype=object)
    assert evaluate(y_true, P) == evaluate(Y, P)


def test_torch_tensors_with_a_gradient_and_in_bfloat16_are_read():
    tensor = torch.tensor(P, requires_grad=True)
    assert evaluate(Y, tensor).vanilla == evaluate(Y, P).vanilla
    half = torch.tensor(P).to(torch.bfloat16)
    assert evaluate(Y, half).vanilla == evaluate(Y, half.float().numpy()).vanilla


def test_table_of_two_columns_is_the_second_column():
    table = np.column_stack([1.0 - P, P])
    expected = evaluate(Y, P)
    for form in (table, table.tolist(), pd.DataFrame(table), pl.DataFrame(table)):
        assert evaluate(Y, form) == expected


def test_two_logit_columns_are_their_difference():
    logits = np.random.default_rng(0).normal(size=(N, 2))
    expected = evaluate(Y, y_logit=logits[:, 1] - logits[:, 0])
    assert evaluate(Y, y_logit=logits) == expected


def test_decimals_are_numbers():
    assert evaluate(Y, [Decimal(str(p)) for p in P]).vanilla == evaluate(Y, P).vanilla


@pytest.mark.parametrize(
    "y_true",
    [
        Y.astype(bool),
        Y.astype(float),
        Y.astype(np.int8),
        pd.Series(Y).astype("boolean"),
        pl.Series(Y.astype(bool)),
        torch.tensor(Y, dtype=torch.bool),
    ],
    ids=["bool", "float", "int8", "nullable", "polars", "torch"],
)
def test_labels_of_any_numeric_type_are_read_alike(y_true):
    assert evaluate(y_true, P) == evaluate(Y, P)


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, pl.Series, pd.Categorical])
def test_named_labels_equal_zero_and_one(wrap):
    names = np.array(["good", "bad"])[Y]
    assert evaluate(wrap(list(names)), P, labels=["good", "bad"]) == evaluate(Y, P)
    flipped = evaluate(wrap(list(names)), 1.0 - P, labels=["bad", "good"])
    assert flipped.vanilla == pytest.approx(evaluate(Y, P).vanilla, rel=1e-14)


def test_classes_follow_the_order_of_labels():
    names = np.array(["low", "mid", "high"])
    named = evaluate(names[CLASSES], P3, labels=names)
    assert named == evaluate(CLASSES, P3)
    alphabetical = np.argsort(names)
    assert evaluate(names[CLASSES], P3[:, alphabetical]).vanilla == pytest.approx(named.vanilla)


@pytest.mark.parametrize(("dtype", "logit"), [(np.float32, "16.6"), (np.float16, "7.6")])
def test_saturated_low_precision_probabilities_are_warned_of(dtype, logit):
    y_pred = P.astype(dtype)
    y_pred[[1, 2]] = 1.0
    with pytest.warns(TrueupWarning) as caught:
        evaluate(Y, y_pred)
    messages = [str(warning.message) for warning in caught]
    assert any(
        m.startswith(f"2 {dtype.__name__} predictions are exactly 1.0") and logit in m
        for m in messages
    )
    assert all(warning.filename == __file__ for warning in caught)


def test_certain_predictions_are_counted_in_a_warning():
    y_pred = np.r_[0.0, 1.0, 1e-17, P[3:]]
    with pytest.warns(TrueupWarning, match="3 predictions are 0 or 1, or closer") as caught:
        evaluate(Y, y_pred)
    assert caught[0].filename == __file__
    table = np.r_[[[0.0, 0.0, 1.0]], P3[1:]]
    with pytest.warns(TrueupWarning, match="1 predictions are 0 or 1"):
        evaluate(CLASSES, table)


@pytest.mark.parametrize("loss", [MSE, COUNTS])
def test_one_is_an_ordinary_value_outside_of_probabilities(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(Y, np.ones(N, dtype=np.float32), loss=loss)


def test_read_rows_keeps_probabilities_in_double_precision():
    rows = read_rows(Y, P.astype(np.float32), loss="log_loss")
    assert rows.margin.dtype == np.float64
    assert rows.weight is None
    assert rows.times is None


@pytest.mark.parametrize("cell", [np.array([]), np.array([0.5, 0.5])])
def test_a_cell_that_holds_an_array_is_refused(cell):
    column = np.empty(2, dtype=object)
    column[:] = [cell, 0.5]
    with pytest.raises(InvalidInputError, match="y_pred must"):
        evaluate([0, 1], column)
