"""One way in for arrays: the same rows give the same numbers and fingerprint from any container.

Each row of the table is a container, a type and a quirk, with the reference that it must equal or
the message that refuses it. Every reader of arrays runs over it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from tests.trueup.read.same_rows import (
    IDS,
    INTS,
    NAMED,
    PADDED,
    REFERENCE,
    N,
    P,
    W,
    Y,
    assert_same,
    holed,
)

import trueup
from trueup.errors import InvalidInputError, TrueupWarning
from trueup.summaries import FieldSummary, from_bytes, summary_of
from trueup_mlflow.log.prediction_table import Place, read_call, write_call


@dataclass(frozen=True)
class Columns:
    """A row of the table of arrays: what is passed, and the reference, message or warning."""

    name: str
    given: dict[str, Any]
    ids: str = "position"
    message: str | None = None
    warns: str | None = None


def two(p):
    return np.column_stack([1.0 - p, p])


def nul(text):
    return pd.Series(text, dtype=object)


SHUFFLED = np.random.default_rng(0).permutation(N)
LABELLED = pd.Index([f"row {i}" for i in range(N)])
THREE = "got 3 missing values in {0}, first at row 17"

ARRAYS = [
    # labels
    *(
        Columns(f"y_true {name}", {"y_true": wrap(Y)})
        for name, wrap in {
            "list": list,
            "tuple": tuple,
            "numpy int8": np.int8,
            "numpy uint8": np.uint8,
            "numpy float32": np.float32,
            "numpy bool": np.bool_,
            "numpy object": lambda y: y.astype(object),
            "column vector": lambda y: y[:, None],
            "pandas int64": pd.Series,
            "pandas Int64": lambda y: pd.Series(y, dtype="Int64"),
            "pandas boolean": lambda y: pd.Series(y == 1, dtype="boolean"),
            "pandas int64[pyarrow]": lambda y: pd.Series(y, dtype="int64[pyarrow]"),
            "pandas bool[pyarrow]": lambda y: pd.Series(y == 1, dtype="bool[pyarrow]"),
            "pandas category": lambda y: pd.Series(y).astype("category"),
            "pandas frame": lambda y: pd.DataFrame({"y": y}),
            "polars Int8": lambda y: pl.Series(y, dtype=pl.Int8),
            "polars Boolean": lambda y: pl.Series(y == 1),
            "polars frame": lambda y: pl.DataFrame({"y": y}),
            "pyarrow int64": pa.array,
            "pyarrow bool": lambda y: pa.array(y == 1),
            "pyarrow chunked": lambda y: pa.chunked_array([y[:9], y[9:]]),
            "pyarrow dictionary": lambda y: pa.array(y).dictionary_encode(),
            "torch int": torch.tensor,
            "torch bool": lambda y: torch.tensor(y == 1),
        }.items()
    ),
    # predictions
    *(
        Columns(f"y_pred {name}", {"y_pred": wrap(P)})
        for name, wrap in {
            "list": list,
            "numpy float16": np.float16,
            "numpy big endian": lambda p: p.astype(">f8"),
            "list of Decimal": lambda p: [Decimal(str(v)) for v in p],
            "list of Fraction": lambda p: [Fraction(v) for v in p],
            "pandas Float64": lambda p: pd.Series(p, dtype="Float64"),
            "pandas double[pyarrow]": lambda p: pd.Series(p, dtype="double[pyarrow]"),
            "polars": pl.Series,
            "pyarrow": pa.array,
            "torch with a gradient": lambda p: torch.tensor(p, requires_grad=True),
            "two numpy columns": two,
            "two unnamed pandas columns": lambda p: pd.DataFrame(two(p)),
            "two unnamed polars columns": lambda p: pl.DataFrame(two(p)),
            "frame of one column": lambda p: pl.DataFrame({"p": p}),
        }.items()
    ),
    # ids
    *(
        Columns(f"row_id {kind} {name}", {"row_id": wrap(IDS[kind])}, ids=kind)
        for kind, name, wrap in [
            ("integers", "list", lambda v: v.tolist()),
            ("integers", "int32", np.int32),
            ("integers", "object", lambda v: v.astype(object)),
            ("integers", "pandas Int64", lambda v: pd.Series(v, dtype="Int64")),
            ("integers", "polars", pl.Series),
            ("integers", "pyarrow", pa.array),
            ("integers", "torch", torch.tensor),
            ("integers", "text list", lambda v: [str(i) for i in v]),
            ("integers", "text numpy", lambda v: v.astype(str)),
            ("integers", "text pandas", lambda v: pd.Series(v).astype("string")),
            ("integers", "text polars", lambda v: pl.Series([str(i) for i in v])),
            ("integers", "text pyarrow", lambda v: pa.array([str(i) for i in v])),
            ("long", "uint64", np.uint64),
            ("long", "Python integers", lambda v: v.tolist()),
            ("long", "text", lambda v: [str(i) for i in v]),
            ("huge", "list", list),
            ("padded", "list", list),
            ("padded", "numpy", lambda v: v.astype(str)),
            ("padded", "pandas", pd.Series),
            ("padded", "pandas category", lambda v: pd.Series(v).astype("category")),
            ("padded", "polars", lambda v: pl.Series(v.tolist())),
            ("padded", "pyarrow large_string", lambda v: pa.array(v, pa.large_string())),
            ("padded", "pyarrow dictionary", lambda v: pa.array(v).dictionary_encode()),
            ("mixed", "list", list),
            ("dates", "list", list),
        ]
    ),
    # class columns
    Columns(
        "classes by name, pandas",
        {
            "y_true": NAMED,
            "y_pred": pd.DataFrame({"yes": P, "no": 1 - P}),
            "labels": ["no", "yes"],
        },
    ),
    Columns(
        "classes by name, polars",
        {
            "y_true": NAMED,
            "y_pred": pl.DataFrame({"yes": P, "no": 1 - P}),
            "labels": ["no", "yes"],
        },
    ),
    Columns(
        "classes by name, pyarrow",
        {"y_true": NAMED, "y_pred": pa.table({"yes": P, "no": 1 - P}), "labels": ["no", "yes"]},
    ),
    Columns("classes 1 and 0 by name", {"y_pred": pd.DataFrame({"1": P, "0": 1 - P})}),
    Columns(
        "logits by name",
        {
            "y_pred": None,
            "y_logit": pd.DataFrame({1: np.log(P), 0: np.log1p(-P)}),
            "labels": [0, 1],
        },
    ),
    Columns(
        "columns of other classes",
        {"y_true": NAMED, "y_pred": pd.DataFrame({"p_no": 1 - P, "p_yes": P})},
        message=r"y_pred must have a column for each class of labels, .* got \['p_no', 'p_yes'\]",
    ),
    Columns(
        "a column twice",
        {"y_true": NAMED, "y_pred": pd.DataFrame(two(P), columns=["yes", "yes"])},
        message="column 'yes' must be in the data frame once; got it 2 times",
    ),
    # indexes of pandas
    Columns(
        "equal indexes",
        {"y_true": pd.Series(Y, LABELLED), "y_pred": pd.Series(P, LABELLED)},
    ),
    Columns("an index on one side", {"y_true": pd.Series(Y, LABELLED)}),
    Columns(
        "indexes of other rows",
        {"y_true": pd.Series(Y, LABELLED), "y_pred": pd.Series(P, range(100, 100 + N))},
    ),
    Columns(
        "permuted labels",
        {
            "y_true": pd.Series(Y, LABELLED),
            "y_pred": pd.Series(P[SHUFFLED], LABELLED[SHUFFLED]),
        },
        message=r"y_pred must have its rows in the order of y_true; .*\.loc\[y_true.index\].*numpy",
    ),
    Columns(
        "permuted weights",
        {
            "y_true": pd.Series(Y, SHUFFLED),
            "y_pred": P,
            "sample_weight": pd.Series(W, SHUFFLED[::-1]),
        },
        message=r"sample_weight must have its rows in the order of y_true; got indexes",
    ),
    Columns(
        "permuted against plain row numbers",
        {"y_true": pd.Series(Y), "y_pred": pd.Series(P, SHUFFLED)},
        warns="y_true and y_pred have the same index labels in another order",
    ),
    Columns(
        "reversed row numbers",
        {"y_true": pd.Series(Y), "y_pred": pd.Series(P[::-1])[::-1].set_axis(range(N - 1, -1, -1))},
        warns="rows are paired by position",
    ),
    # missing values
    *(
        Columns(f"missing y_true {name}", {"y_true": made}, message=THREE.format("y_true"))
        for name, made in {
            "list": holed(Y),
            "object": nul(holed(Y)),
            "object NaN": np.array([float("nan") if v is None else v for v in holed(Y)], object),
            "pandas Int64": pd.Series(holed(Y), dtype="Int64"),
            "pandas boolean": pd.Series(holed(Y == 1), dtype="boolean"),
            "pandas int64[pyarrow]": pd.Series(holed(Y.tolist()), dtype="int64[pyarrow]"),
            "pandas category": pd.Series(holed(Y)).astype("category"),
            "polars Int64": pl.Series(holed(Y.tolist())),
            "polars Boolean": pl.Series(holed((Y == 1).tolist())),
            "pyarrow": pa.array(holed(Y.tolist())),
            "pyarrow bool": pa.array(holed((Y == 1).tolist())),
        }.items()
    ),
    Columns(
        "missing named labels",
        {"y_true": holed(NAMED), "labels": ["no", "yes"]},
        message=THREE.format("y_true"),
    ),
    Columns(
        "missing predictions",
        {"y_pred": pd.Series(holed(P), dtype="Float64")},
        message=THREE.format("y_pred"),
    ),
    Columns(
        "missing weights",
        {"sample_weight": pl.Series(holed(W.tolist()))},
        message=THREE.format("sample_weight"),
    ),
    *(
        Columns(f"missing row_id {name}", {"row_id": made}, message=THREE.format("row_id"))
        for name, made in {
            "text": holed(PADDED),
            "pandas Int64": pd.Series(holed(INTS.tolist()), dtype="Int64"),
            "polars text": pl.Series(holed(PADDED)),
            "pyarrow": pa.array(holed(INTS.tolist())),
        }.items()
    ),
    # ids that are none
    Columns("float ids", {"row_id": P}, message="row_id must be integers or strings; got dtype"),
    Columns("bool ids", {"row_id": Y == 1}, message="row_id must be integers or strings"),
    Columns(
        "ids of two types", {"row_id": [*PADDED[:-1], 7]}, message="row_id must be integers or str"
    ),
    Columns(
        "ids beyond 64 bits", {"row_id": [2**70] * N}, message="row_id must be integers of 64 bits"
    ),
    Columns(
        "a lone surrogate",
        {"row_id": [*PADDED[:-1], "\ud800"]},
        message="text that UTF-8 can write",
    ),
    Columns(
        "a long text", {"y_true": ["x" * 10**7, *["x"] * (N - 1)]}, message="y_true must be 0 and 1"
    ),
]


def arguments_of(case):
    named = any(values is NAMED for values in case.given.values())
    base = {"y_true": Y, "y_pred": P, **({"labels": ["no", "yes"]} if named else {})}
    return {**base, **case.given}


def by_evaluate(given):
    return trueup.evaluate(**given)


def by_summary(given):
    summary = summary_of("log_loss", trueup.CrossFit())
    summary.update(**given)
    return from_bytes(summary.to_bytes()).compute()


def by_stored_call(given):
    table = write_call(given.pop("y_true"), given.pop("y_pred"), Place("", 0, 0), **given)
    return trueup.evaluate(**read_call(table).arguments)


def by_bias_interval(given):
    """Return the evaluation, after another reader of the same columns has taken them."""
    trueup.bias_test(**{k: v for k, v in given.items() if k != "row_id"})
    return trueup.evaluate(**given)


def by_fields(given):
    """Return the evaluation, after the readers of fields have measured the same columns."""
    y_true, y_pred = given["y_true"], given["y_pred"]
    site = np.arange(N) % 5
    if y_pred is not None and "labels" not in given:
        weight = given.get("sample_weight")
        error = trueup.field_calibration_error(y_true, y_pred, site, sample_weight=weight)
        assert error == pytest.approx(FIELD_ERROR, abs=1e-12)
        measured = trueup.field_calibration(y_true, y_pred, site, sample_weight=weight)
        assert measured.ece == pytest.approx(FIELD_ERROR, abs=1e-12)
        summary = FieldSummary("site")
        summary.update(y_true, y_pred, site, sample_weight=weight)
        assert summary.compute().ece == pytest.approx(FIELD_ERROR, abs=1e-12)
    return trueup.evaluate(**given)


FIELD_ERROR = trueup.field_calibration_error(Y, P, np.arange(N) % 5)
ARRAY_READERS = [by_evaluate, by_summary, by_stored_call, by_bias_interval, by_fields]


@pytest.mark.parametrize("read", ARRAY_READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("case", ARRAYS, ids=lambda case: case.name)
def test_arrays_mean_the_same_in_every_container(case, read):
    given = arguments_of(case)
    weight = given.get("sample_weight")
    message, warns = (m and m.replace("y_pred", "y_pr(ed|oba)") for m in (case.message, case.warns))
    if case.message is not None:
        if read is by_bias_interval and "row_id" in case.given:
            pytest.skip("it takes no ids")
        with pytest.raises(InvalidInputError, match=message) as error:
            read(given)
        assert len(str(error.value)) < 600
        return
    expects = nullcontext() if warns is None else pytest.warns(TrueupWarning, match=warns)
    with expects:
        got = read(given)
    assert_same(got, REFERENCE[case.ids, weight is not None])


def test_the_table_holds_many_rows_with_names_of_their_own():
    assert len({case.name for case in ARRAYS}) == len(ARRAYS) >= 40


FIELDS = {
    "numpy": lambda v: np.array(v, dtype=object),
    "list": list,
    "pandas": pd.Series,
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "pandas category": lambda v: pd.Series(v).astype("category"),
    "polars": pl.Series,
    "polars category": lambda v: pl.Series(v, dtype=pl.Categorical),
    "pyarrow": pa.array,
    "pyarrow dictionary": lambda v: pa.array(v).dictionary_encode(),
}


@pytest.mark.parametrize("container", FIELDS)
def test_levels_mean_the_same_in_every_container(container):
    levels = [None if i % 7 == 0 else f"site {i % 4}" for i in range(N)]
    expected = trueup.evaluate(Y, P, fields={"site": np.array(levels, dtype=object)}).fields
    got = trueup.evaluate(Y, P, fields={"site": FIELDS[container](levels)}).fields
    assert got["site"].ece == pytest.approx(expected["site"].ece, abs=1e-12)
    assert sorted(got["site"].cells.level) == sorted(expected["site"].cells.level)


@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_frame_is_a_mapping_of_fields(frame_of):
    fields = {"a": np.arange(N) % 3, "b": np.arange(N) % 4}
    assert trueup.evaluate(Y, P, fields=frame_of(fields)) == trueup.evaluate(Y, P, fields=fields)
