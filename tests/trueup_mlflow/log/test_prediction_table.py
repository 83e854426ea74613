from __future__ import annotations

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import trueup
from trueup.errors import InvalidInputError
from trueup.losses import LogLoss
from trueup_mlflow.log.prediction_table import Place, read_call, write_call

N = 300
RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
LOGIT = np.log(P / (1.0 - P))
PROBA3 = RNG.dirichlet([1.0, 1.0, 1.0], N)
Y3 = np.array([RNG.choice(3, p=row) for row in PROBA3])
NAMES = np.array(["no", "yes"])[Y]
MISSING = np.where(Y3 == 0, None, np.array(["a", "b", "c"])[Y3])

CALLS = {
    "probabilities": (Y, P, {}),
    "float32": (Y, P.astype(np.float32), {}),
    "two columns": (Y, np.column_stack([1.0 - P, P]), {}),
    "logits": (Y, None, {"y_logit": LOGIT}),
    "torch": (torch.tensor(Y), torch.tensor(P, requires_grad=True), {}),
    "pandas": (pd.Series(Y), pd.Series(P, index=range(5, N + 5)), {}),
    "polars": (pl.Series(Y), pl.Series(P), {}),
    "bool": (Y == 1, P, {"split": trueup.HoldOut(0.3, salt=2)}),
    "named classes": (NAMES, P, {"labels": ["no", "yes"]}),
    "pandas strings": (pd.Series(NAMES), P, {"labels": np.array(["no", "yes"])}),
    "object integers": (Y.astype(object), P, {"labels": [0, 1]}),
    "three classes": (Y3, PROBA3, {}),
    "three logits": (Y3, None, {"y_logit": np.log(PROBA3), "labels": [0, 1, 2]}),
    "brier": (Y, P, {"loss": "brier_score", "sample_weight": RNG.random(N)}),
    "regression": (LOGIT, P, {"loss": "mean_squared_error", "split": trueup.InSample()}),
    "counts": (Y, P, {"loss": "poisson_deviance"}),
    "row ids": (Y, P, {"row_id": np.arange(N, dtype=np.uint64) + 2**63}),
    "string ids": (Y, P, {"row_id": [f"row {i}" for i in range(N)]}),
    "months": (
        Y,
        P,
        {
            "times": np.datetime64("2013-01-01") + np.arange(N),
            "split": trueup.Rolling("month"),
        },
    ),
    "pandas times": (
        Y,
        P,
        {
            "times": pd.Series(pd.date_range("2013-01-01", periods=N, freq="D")),
            "split": trueup.Rolling("month"),
        },
    ),
    "hours": (
        Y,
        P,
        {"times": np.datetime64("2013-01-01T00") + np.arange(N), "split": trueup.Rolling("24h")},
    ),
    "whole months": (
        Y,
        P,
        {"times": np.datetime64("2013-01") + np.arange(N) % 24, "split": trueup.Rolling("90d")},
    ),
    "seconds": (
        Y,
        P,
        {
            "times": np.datetime64("2013-01-01T00:00:00") + np.arange(N),
            "split": trueup.Rolling("1min"),
        },
    ),
    "bfloat16": (torch.tensor(Y), torch.tensor(P).to(torch.bfloat16), {}),
    "bfloat16 logits": (Y3, None, {"y_logit": torch.tensor(np.log(PROBA3)).to(torch.bfloat16)}),
    "big endian": (Y.astype(">i8"), P.astype(">f8"), {}),
    "numeric times": (Y, P, {"times": np.arange(N) * 1.5, "split": trueup.Rolling(90)}),
    "fields": (
        Y,
        P,
        {
            "fields": {
                "int": Y3,
                "missing": MISSING,
                "category": pd.Series(MISSING).astype("category"),
                "float with NaN": np.where(Y3 == 1, np.nan, Y3),
                "mixed": np.array([0, "a", None] * 100, dtype=object),
                "month": np.datetime64("2013-01") + np.arange(N) % 5,
                "delay": np.arange(N) % 5 * np.timedelta64(1, "h"),
            }
        },
    ),
}
CALLS["all"] = (
    Y,
    P,
    {**CALLS["row ids"][2], **CALLS["brier"][2], **CALLS["fields"][2], "times": np.arange(N)},
)


def through_a_file(table):
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return pq.read_table(buffer)


@pytest.mark.parametrize("kind", CALLS)
def test_stored_call_gives_the_same_evaluation_bit_for_bit(kind):
    y_true, y_pred, options = CALLS[kind]
    place = Place("val_", 3, 123, "m-1", "validation", "abc")
    stored = read_call(through_a_file(write_call(y_true, y_pred, place, **options)))
    assert stored.place == place
    assert trueup.evaluate(**stored.arguments) == trueup.evaluate(y_true, y_pred, **options)


def test_a_loss_that_text_cannot_name_is_refused():
    with pytest.raises(InvalidInputError, match="loss must be the name of a loss to be stored"):
        write_call(Y, P, Place("", 0, 0), loss=LogLoss())


def test_a_split_that_text_cannot_name_is_refused():
    class Own(trueup.InSample):
        pass

    with pytest.raises(InvalidInputError, match="split must be one of"):
        write_call(Y, P, Place("", 0, 0), split=Own())


@pytest.mark.parametrize("metadata", [None, {b"trueup": b'{"format": 99}'}])
def test_another_table_is_refused(metadata):
    table = pa.table({"y_true": Y, "y_pred": P}).replace_schema_metadata(metadata)
    with pytest.raises(InvalidInputError, match="table must hold predictions of format 1"):
        read_call(table)
