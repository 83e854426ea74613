"""One way in for files: the same rows give the same numbers and fingerprint in any format.

Each row of the table is a file or two, a type and a quirk, with the reference that it must equal or
the message that refuses it. Every reader of files runs over it.
"""

from __future__ import annotations

import gzip
import json
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.trueup.read.same_rows import IDS, INTS, NAMED, REFERENCE, N, P, W, Y, assert_same, holed

import trueup
from trueup import evaluate_files
from trueup.errors import InvalidInputError, TrueupError, TrueupWarning
from trueup.read.csv_files import Dialect
from trueup.read.tables import read_columns, read_file
from trueup.summaries import from_bytes, summary_of
from trueup_cli.app import app
from trueup_spark.frames import Query, summarise


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
        message="sep must be one character of ASCII, no quote and no line end; got '::'",
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
    query = Query("log_loss", trueup.CrossFit(), labels or None, columns, ())
    for path in paths:
        batches = pq.read_table(path, columns=["id", "y", "p", "w"]).to_batches()
        for part in summarise(query, iter(batches)):
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


def test_the_table_holds_many_rows_with_names_of_their_own():
    assert len({case.name for case in FILES}) == len(FILES) >= 40


@pytest.mark.parametrize("ids", ["padded", "mixed", "huge", "dates"])
def test_text_stays_text_in_the_tables_that_monitoring_joins(ids, tmp_path):
    as_csv(tmp_path, ids)
    as_parquet(tmp_path, ids)
    of_csv, of_parquet = (
        read_file(tmp_path / name, texts=["id"]).column("id").to_pylist()
        for name in ("a.csv", "a.parquet")
    )
    assert of_csv == of_parquet == list(IDS[ids])


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
