"""One way in: the same rows give the same numbers and fingerprint from wherever they come.

Each row of the two tables is a container or a file, a type and a quirk, with the reference that it
must equal or the message that refuses it. Every reader of arrays runs over the first table, every
reader of files over the second.
"""

from __future__ import annotations

import gzip
import json
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from click.testing import CliRunner

import trueup
from trueup import evaluate_files
from trueup.errors import InvalidInputError, TrueupError, TrueupWarning
from trueup.read.csv_files import Dialect
from trueup.read.tables import read_columns, read_file
from trueup.summaries import FieldSummary, from_bytes, summary_of
from trueup_cli import main as _main  # noqa: F401 - the command exists
from trueup_cli.app import app
from trueup_mlflow.log.prediction_table import Place, read_call, write_call
from trueup_spark.frames import _Query, _summarise

N = 60
RNG = np.random.default_rng(3)
P = RNG.integers(1, 64, N) / 64  # exact in float16 and in few decimals
Y = (RNG.random(N) < P).astype(np.int64)
W = RNG.integers(1, 9, N) / 4
INTS = RNG.permutation(10 * N)[:N].astype(np.int64) - 30
LONG = [10_000_000_000_000_000_000 + 7 * int(i) for i in range(N)]  # beyond int64, within uint64
HUGE = [str(10**24 + i) for i in range(N)]
PADDED = [f"{i:05d}" for i in range(N)]
MIXED = [str(i) if i % 2 else f"0{i}" for i in range(N)]  # "7" and "07"
DATES = [str(np.datetime64("2024-01-01") + i) for i in range(N)]
NAMED = np.array(["no", "yes"])[Y]
IDS = {
    "position": None,
    "integers": INTS,
    "long": np.array(LONG, dtype=np.uint64),
    "huge": np.array(HUGE, dtype=object),
    "padded": np.array(PADDED, dtype=object),
    "mixed": np.array(MIXED, dtype=object),
    "dates": np.array(DATES, dtype=object),
}
REFERENCE = {
    (kind, weighted): trueup.evaluate(Y, P, row_id=ids, sample_weight=W if weighted else None)
    for kind, ids in IDS.items()
    for weighted in (False, True)
}


def assert_same(got, expected):
    assert got.fingerprint == expected.fingerprint
    assert got.n == expected.n
    for name in ("vanilla", "calibrated", "bias_term", "bias_cost"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=1e-12)


# --- arrays -----------------------------------------------------------------------------------


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


def holed(values, rows=(17, 30, 42)):
    listed = list(values)
    for row in rows:
        listed[row] = None
    return listed


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


# --- files ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files:
    """A row of the table of files: what writes them, and the reference, message or warning."""

    name: str
    write: Any
    ids: str = "integers"
    message: str | None = None
    warns: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()


def frame(ids="integers", **other):
    values = IDS[ids] if ids != "position" else INTS
    return pd.DataFrame({"id": values, "y": Y, "p": P, "w": W, **other})


def csv_text(ids="integers", sep=",", decimal=".", end="\n", **other):
    return frame(ids, **other).to_csv(index=False, sep=sep, decimal=decimal, lineterminator=end)


def as_parquet(folder, ids="integers", **other):
    frame(ids, **other).to_parquet(folder / "a.parquet", index=False)


def as_csv(folder, ids="integers", *, encoding="utf-8", edit=lambda text: text, **other):
    (folder / "a.csv").write_bytes(edit(csv_text(ids, **other)).encode(encoding))


def as_two_csv(folder, ids="integers", cut=25):
    whole = frame(ids)
    whole[:cut].to_csv(folder / "a.csv", index=False)
    whole[cut:].to_csv(folder / "b.csv", index=False)


def as_csv_and_parquet(folder, ids="integers"):
    frame(ids)[:25].to_csv(folder / "a.csv", index=False)
    frame(ids)[25:].to_parquet(folder / "b.parquet", index=False)


def as_gzip(folder, ids="padded"):
    with gzip.open(folder / "a.csv.gz", "wt") as file:
        file.write(csv_text(ids))


def parquet_twice(folder):
    arrays = [pa.array(INTS), pa.array(Y), pa.array(P), pa.array(P), pa.array(W)]
    pq.write_table(pa.table(arrays, names=["id", "y", "p", "p", "w"]), folder / "a.parquet")


def cell(row, column, value):
    """Return an edit that writes a cell of a CSV file."""

    def edit(text):
        lines = text.split("\n")
        cells = lines[row + 1].split(",")
        cells[column] = value
        lines[row + 1] = ",".join(cells)
        return "\n".join(lines)

    return edit


def edits(*all_of_them):
    def edit(text):
        for one in all_of_them:
            text = one(text)
        return text

    return edit


def raw(folder, data, name="a.csv"):
    (folder / name).write_bytes(data)


def mixed_id_types(folder):
    as_two_csv(folder)
    text = (folder / "b.csv").read_text().replace("\n", "\nu", 1)
    (folder / "b.csv").write_text(text)


def latin(text):
    return text.replace("id,", "íd,", 1)


FILES = [
    *(
        Files(f"{kind} ids in {name}", partial(write, ids=kind), kind)
        for kind in IDS
        if kind != "position"
        for name, write in {"parquet": as_parquet, "CSV": as_csv, "two CSVs": as_two_csv}.items()
    ),
    Files("CSV beside parquet", as_csv_and_parquet),
    Files("text CSV beside parquet", partial(as_csv_and_parquet, ids="padded"), "padded"),
    Files("gz", as_gzip, "padded"),
    Files("BOM", partial(as_csv, encoding="utf-8-sig")),
    Files("CR LF", partial(as_csv, end="\r\n")),
    Files("quotes", partial(as_csv, edit=lambda t: '"id","y",p,w' + t[t.index("\n") :])),
    Files("quoted cells", partial(as_csv, edit=cell(3, 2, f'"{P[3]}"'))),
    Files("blanks around a number", partial(as_csv, edit=cell(3, 2, f" {P[3]} "))),
    Files("exponents", partial(as_csv, edit=cell(3, 2, f"{P[3]:.17e}"))),
    Files("labels as floats", partial(as_csv, y=Y.astype(float))),
    Files("labels as truth values", partial(as_csv, y=Y == 1)),
    Files("labels true and false", partial(as_csv, y=np.array(["false", "true"])[Y])),
    Files("truth values in parquet", partial(as_parquet, y=Y == 1)),
    Files("named labels", partial(as_csv, y=NAMED), labels=("no", "yes")),
    Files("named labels in parquet", partial(as_parquet, y=NAMED), labels=("no", "yes")),
    Files(
        "categories in parquet", partial(as_parquet, y=pd.Categorical(NAMED)), labels=("no", "yes")
    ),
    Files(
        "semicolons and decimal commas",
        partial(as_csv, sep=";", decimal=","),
        warns="a.csv was read with ';' between cells and ',' as the decimal point",
    ),
    Files(
        "semicolons and decimal points",
        partial(as_csv, sep=";"),
        warns="a.csv was read with ';' between cells and '.' as the decimal point",
    ),
    Files("tabs", partial(as_csv, sep="\t"), warns=r"a.csv was read with '\\t' between cells"),
    Files(
        "semicolons, given",
        partial(as_csv, sep=";", decimal=","),
        options=(("sep", ";"), ("decimal", ",")),
    ),
    Files("tabs, given", partial(as_csv, sep="\t"), options=(("sep", "\t"),)),
    Files("ids of two types, allowed", mixed_id_types, "any", options=(("id_type", "text"),)),
    # refused
    Files(
        "ids of two types", mixed_id_types, message="files must agree about the type of .*row.id"
    ),
    Files(
        "text where integers are said",
        partial(as_csv, ids="padded"),
        message="row.id.* must be integers, as .*id.type says",
        options=(("id_type", "integer"),),
    ),
    Files(
        "missing ids in CSV",
        partial(as_csv, edit=edits(*(cell(i, 0, "") for i in (17, 30, 42)))),
        message="column 'id' of .*a.csv must not .* got 3 missing values in id, first at row 17",
    ),
    Files(
        "missing ids in parquet",
        partial(as_parquet, id=pd.array(holed(INTS.tolist()), dtype="Int64")),
        message="got 3 missing values in id, first at row 17",
    ),
    Files(
        "missing labels in CSV",
        partial(as_csv, edit=cell(17, 1, "")),
        message="got 1 missing value in y, first at row 17",
    ),
    Files(
        "missing weights in CSV",
        partial(as_csv, edit=cell(17, 3, "NA")),
        message="got 1 missing value in w, first at row 17",
    ),
    Files(
        "missing predictions in parquet",
        partial(as_parquet, p=pd.array(holed(P.tolist()), dtype="Float64")),
        message="got 3 missing values in p, first at row 17",
    ),
    Files("a column twice in parquet", parquet_twice, message="column 'p' must be in .* 2 times"),
    Files(
        "a column twice in CSV",
        partial(as_csv, edit=lambda t: t.replace("id,y,p,w", "id,y,p,p", 1)),
        message="column 'p' must be in .*a.csv once; got it 2 times",
    ),
    Files(
        "a name of other case",
        partial(as_csv, edit=lambda t: t.replace("y,p,w", "y,P,w", 1)),
        message="column 'p' must be in .*; got id, y, P, w. Did you mean 'P'?",
    ),
    Files(
        "a name with blanks",
        partial(as_csv, edit=lambda t: t.replace("y,p,w", "y, p ,w", 1)),
        message="Did you mean ' p '?",
    ),
    Files(
        "a name with blanks in parquet",
        lambda folder: frame().rename(columns={"p": "P "}).to_parquet(folder / "a.parquet"),
        message="Did you mean 'P '?",
    ),
    Files(
        "text among numbers",
        partial(as_csv, edit=cell(9, 2, "half")),
        message="column 'p' of .*a.csv must be numbers; got 'half'",
    ),
    Files(
        "a number of two commas",
        partial(as_csv, edit=cell(9, 2, '"0.1,5"')),
        message="column 'p' of .*a.csv must be numbers",
    ),
    Files(
        "NUL in a number", partial(as_csv, edit=cell(9, 2, "0.\x005")), message="must be numbers"
    ),
    Files(
        "half a line",
        partial(as_csv, edit=lambda t: t[: t.rindex(",")]),
        message="a.csv must be a readable file; got CSV parse error",
    ),
    Files(
        "a lone surrogate",
        lambda folder: raw(folder, csv_text("padded").encode().replace(b"00009", b"\xed\xa0\x80")),
        message="must be text in UTF-8; got byte 0xed|must be a readable file",
    ),
    Files(
        "UTF-16",
        lambda folder: raw(folder, csv_text().encode("utf-16")),
        message="must be text in UTF-8; got byte 0xff at byte 0",
    ),
    Files(
        "a cell of ten million characters",
        partial(as_csv, edit=cell(9, 1, "1" * 10**7)),
        message="must be|got",
    ),
    Files("an empty file", lambda folder: raw(folder, b""), message="got Empty CSV file"),
    Files(
        "a header only", lambda folder: raw(folder, b"id,y,p,w\n"), message="files must hold at le"
    ),
    Files(
        "a broken parquet file",
        lambda folder: raw(folder, b"PAR1 half", "a.parquet"),
        message="a.parquet must be a readable file",
    ),
    Files(
        "a cut gz file",
        lambda folder: raw(folder, gzip.compress(csv_text().encode())[:-40], "a.csv.gz"),
        message="a.csv.gz must be a readable file",
    ),
    Files(
        "a separator of two characters",
        as_csv,
        message="sep must be one character; got '::'",
        options=(("sep", "::"),),
    ),
]

NAMES = {"y_true": "y", "y_proba": "p", "row_id": "id", "sample_weight": "w"}
ROLES = {"id": "id", "y": "label", "p": "number", "w": "number"}


def by_batches(paths, options, labels):
    given = {**NAMES, **options, "labels": list(labels) or None}
    return evaluate_files(paths, **given)


def by_whole_columns(paths, options, labels):
    options = dict(options)
    dialect = Dialect(options.pop("sep", None), options.pop("decimal", None))
    columns = read_columns(paths, ROLES, dialect=dialect, **options)
    return trueup.evaluate(
        columns["y"],
        columns["p"],
        labels=list(labels) or None,
        row_id=columns["id"],
        sample_weight=columns["w"],
    )


def by_command(paths, options, labels):
    typed = [*paths, "--target", "y", "--proba", "p", "--row-id", "id", "--weight", "w", "--json"]
    typed += [t for name, value in options.items() for t in (f"--{name.replace('_', '-')}", value)]
    typed += [word for label in labels for word in ("--label", label)]
    run = CliRunner().invoke(app, ["evaluate", *typed])
    if run.exit_code != 0:
        assert run.exit_code == 2, run.output
        raise InvalidInputError(run.stderr)
    for line in run.stderr.splitlines():
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), TrueupWarning, stacklevel=2)
    return Printed(json.loads(run.stdout))


class Printed:
    """The printed object, read as an evaluation."""

    def __init__(self, content):
        self.__dict__.update(content)


def by_partitions(paths, options, labels):
    """Run what a worker of Spark runs, on the batches that it gets."""
    merged = summary_of("log_loss", trueup.CrossFit())
    columns = {"y_true": "y", "y_pred": "p", "row_id": "id", "sample_weight": "w"}
    query = _Query("log_loss", trueup.CrossFit(), labels or None, columns, ())
    for path in paths:
        batches = pq.read_table(path, columns=["id", "y", "p", "w"]).to_batches()
        for part in _summarise(query, iter(batches)):
            merged.merge(from_bytes(part.column("summary")[0].as_py()))
    return merged.compute()


FILE_READERS = [by_batches, by_whole_columns, by_command, by_partitions]


@pytest.mark.parametrize("read", FILE_READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
def test_files_mean_the_same_in_every_format(case, read, tmp_path):
    case.write(tmp_path)
    paths = sorted(map(str, tmp_path.iterdir()))
    if read is by_partitions and (case.options or case.message or not paths[0].endswith("parquet")):
        pytest.skip("Spark reads its own frames")
    if case.message is not None:
        with pytest.raises(TrueupError, match=case.message) as error:
            read(paths, dict(case.options), case.labels)
        assert len(str(error.value)) < 900
        assert "\n" not in str(error.value).strip()
        return
    expects = nullcontext() if case.warns is None else pytest.warns(TrueupWarning, match=case.warns)
    with expects:
        got = read(paths, dict(case.options), case.labels)
    if case.ids != "any":
        assert_same(got, REFERENCE[case.ids, True])


def test_the_tables_hold_eighty_rows_with_names_of_their_own():
    for table in (ARRAYS, FILES):
        assert len({case.name for case in table}) == len(table)
    assert len(ARRAYS) + len(FILES) >= 80


@pytest.mark.parametrize("ids", ["padded", "mixed", "huge", "dates"])
def test_text_stays_text_in_the_tables_that_monitoring_joins(ids, tmp_path):
    as_csv(tmp_path, ids)
    as_parquet(tmp_path, ids)
    of_csv, of_parquet = (
        read_file(tmp_path / name, texts=["id"]).column("id").to_pylist()
        for name in ("a.csv", "a.parquet")
    )
    assert of_csv == of_parquet == list(IDS[ids])


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


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_levels_mean_the_same_in_every_file(form, tmp_path):
    levels = {
        "text": [None if i % 7 == 0 else f"site {i % 4}" for i in range(N)],
        "padded": [f"{i % 4:03d}" for i in range(N)],
        "whole": pd.array([None if i % 7 == 0 else i % 4 for i in range(N)], dtype="Int64"),
        "floats": [float("nan") if i % 7 == 0 else float(i % 4) for i in range(N)],
    }
    path = str(tmp_path / f"a.{form}")
    rows = frame(**levels)
    rows.to_parquet(path) if form == "parquet" else rows.to_csv(path, index=False)
    whole = {
        n: v if n != "whole" else v.to_numpy(dtype=object, na_value=None) for n, v in levels.items()
    }
    expected = trueup.evaluate(Y, P, fields=whole).fields
    columns = read_columns([path], {"y": "label", "p": "number", **dict.fromkeys(levels, "level")})
    of_columns = trueup.evaluate(
        columns["y"], columns["p"], fields={name: columns[name] for name in levels}
    ).fields
    of_batches = evaluate_files(path, y_true="y", y_proba="p", fields=list(levels)).fields
    for name in levels:
        assert of_columns[name].ece == pytest.approx(expected[name].ece, abs=1e-12)
        assert of_batches[name].ece == pytest.approx(expected[name].ece, abs=1e-12)
        assert set(of_columns[name].cells.level) == set(expected[name].cells.level)
