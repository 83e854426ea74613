from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.special import expit

import trueup.read.csv_files
import trueup.read.files
from trueup import CrossFit, HoldOut, evaluate, evaluate_files
from trueup.errors import InexactSummaryError, InvalidInputError


@pytest.fixture(autouse=True)
def evaluate_by_rows(monkeypatch):
    """Let ``evaluate`` go over all rows: it is the yardstick here."""
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 10**9)


@pytest.fixture
def frame():
    rng = np.random.default_rng(5)
    n = 9_000
    logit = rng.normal(-1.6, 1.2, n)
    return pd.DataFrame(
        {
            "click": (rng.random(n) < expit(0.7 * logit + 0.2)).astype(int),
            "p": expit(logit),
            "logit": logit,
            "id": [f"row {i}" for i in rng.permutation(n)],
            "weight": rng.uniform(0.0, 2.0, n),
            "site": rng.choice(["a", "b", "", None], n),
            "hour": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(0, 24, n)), "Int64"),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 4, n) * 1.0),
        }
    )


@pytest.fixture(params=["parquet", "csv", "csv.gz"])
def files(request, frame, tmp_path, monkeypatch):
    """Write the rows as three files of different sizes, read in small batches."""
    monkeypatch.setattr(trueup.read.files, "_BATCH_ROWS", 1_000)
    monkeypatch.setattr(trueup.read.csv_files, "_BLOCK", 50_000)
    for i, part in enumerate(np.split(np.arange(len(frame)), [100, 5_000])):
        path = tmp_path / f"part-{i}.{request.param}"
        if request.param == "parquet":
            frame.iloc[part].to_parquet(path, index=False, row_group_size=700)
        else:
            frame.iloc[part].to_csv(path, index=False, float_format="%.17g")
    return tmp_path / f"*.{request.param}"


def assert_same(got, expected):
    assert got.fingerprint == expected.fingerprint
    assert got.n == expected.n
    for name in ("vanilla", "calibrated", "bias_term", "bias_cost"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=1e-11)
    assert got.standard_errors == pytest.approx(expected.standard_errors, abs=1e-11)


@pytest.mark.parametrize("split", [CrossFit(), HoldOut(0.2)], ids=repr)
def test_files_give_the_result_of_their_rows(files, frame, split):
    got = evaluate_files(
        files,
        y_true="click",
        y_proba="p",
        row_id="id",
        sample_weight="weight",
        split=split,
        threads=2,
    )
    expected = evaluate(
        frame.click, frame.p, row_id=frame.id, sample_weight=frame.weight, split=split
    )
    assert_same(got, expected)


def test_positions_run_over_all_files_in_the_order_of_their_names(files, frame):
    rows = []
    got = evaluate_files([files], y_true="click", y_logit="logit", on_batch=rows.append)
    assert_same(got, evaluate(frame.click, y_logit=frame.logit))
    assert sum(rows) == len(frame)
    assert len(rows) > 9


def test_fields_of_files_equal_those_in_memory(files, frame):
    names = ["hour", "size"]  # CSV can't tell a missing string from an empty one
    got = evaluate_files(files, y_true="click", y_proba="p", fields=names).fields
    fields = {"hour": frame.hour.astype(object).where(frame.hour.notna(), None)}
    expected = evaluate(frame.click, frame.p, fields={**fields, "size": frame["size"]}).fields
    for name in names:
        assert got[name].n_levels == expected[name].n_levels
        assert got[name].ece == pytest.approx(expected[name].ece, abs=1e-12)


def test_missing_and_empty_strings_are_levels_of_their_own_in_parquet(frame, tmp_path):
    frame.to_parquet(tmp_path / "all.parquet")
    got = evaluate_files(
        tmp_path / "all.parquet", y_true="click", y_proba="p", fields=["site"]
    ).fields["site"]
    expected = evaluate(frame.click, frame.p, fields={"site": frame.site.astype(object)})
    assert got.n_levels == expected.fields["site"].n_levels == 4
    assert got.ece == pytest.approx(expected.fields["site"].ece, abs=1e-12)


def test_regression_reads_predicted_targets(frame, tmp_path):
    frame.to_parquet(tmp_path / "all.parquet")
    got = evaluate_files(
        tmp_path / "all.parquet", y_true="weight", y_proba="logit", loss="mean_squared_error"
    )
    assert_same(got, evaluate(frame.weight, frame.logit, loss="mean_squared_error"))


def test_memory_stays_far_below_the_file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "large.parquet"
    schema = pa.schema([("y", pa.int8()), ("p", pa.float64()), ("id", pa.int64())])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none") as writer:
        for i in range(8):
            p = rng.random(1_000_000)
            columns = [
                pa.array((rng.random(1_000_000) < p).astype(np.int8)),
                pa.array(p),
                pa.array(np.arange(i * 1_000_000, (i + 1) * 1_000_000)),
            ]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=262_144)
    code = (
        "import resource\n"
        "from trueup import evaluate_files\n"
        "import pyarrow.parquet, pandas, scipy.special\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "before = peak()\n"
        f"n = evaluate_files({str(path)!r}, y_true='y', y_proba='p', row_id='id').n\n"
        "print(n, peak() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n, grown = run.stdout.split()
    assert n == "8000000"
    assert path.stat().st_size > 130 * 2**20
    assert float(grown) < 100.0


def test_a_bias_too_large_for_far_logits_is_refused(frame, tmp_path):
    frame.assign(logit=frame.logit - 45.0).to_parquet(tmp_path / "far.parquet")
    with pytest.raises(InexactSummaryError, match=r"got a bias of -4.*, or pass the rows, or a"):
        evaluate_files(tmp_path / "far.parquet", y_true="click", y_logit="logit")


@pytest.mark.parametrize("threads", [1, 2])
def test_bad_files_are_refused_by_name(threads, frame, tmp_path):
    frame.loc[frame.index[5], "p"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.parquet").write_text("x")
    options = {"y_true": "click", "y_proba": "p", "threads": threads}
    with pytest.raises(InvalidInputError, match=r"paths must name files; got '.*/no-\*'"):
        evaluate_files(tmp_path / "no-*", **options)
    with pytest.raises(InvalidInputError, match=r"paths must end in one of .*; got 'a.txt'"):
        evaluate_files(tmp_path / "a.txt", **options)
    with pytest.raises(InvalidInputError, match=r"b.parquet must be a readable file; got"):
        evaluate_files(tmp_path / "b.parquet", **options)
    with pytest.raises(InvalidInputError, match=r"column 'q' must be in .*a.parquet; got click"):
        evaluate_files(tmp_path / "a.parquet", **(options | {"y_proba": "q"}))
    with pytest.raises(InvalidInputError, match="got 1 missing value in p, first at row 5"):
        evaluate_files(tmp_path / "a.parquet", **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_says_from_where_its_index_counts(threads, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(trueup.read.files, "_BATCH_ROWS", 1_000)
    frame.loc[2_005, "p"] = 1.5
    frame.to_parquet(tmp_path / "a.parquet")
    message = r"got 1\.5 at index 5\. .* It is row 2005 of .*a\.parquet"
    with pytest.raises(InvalidInputError, match=message):
        evaluate_files(tmp_path / "a.parquet", y_true="click", y_proba="p", threads=threads)


def test_a_csv_column_has_the_type_of_all_of_its_rows(tmp_path, monkeypatch):
    """What the first block holds says nothing about the last: 1, 1, ..., 0.5 are weights."""
    monkeypatch.setattr(trueup.read.csv_files, "_BLOCK", 5_000)
    n = 3_000
    rng = np.random.default_rng(0)
    p = rng.random(n)
    frame = pd.DataFrame(
        {
            "y": (rng.random(n) < p).astype(int),
            "p": p,
            "id": [*map(str, range(n - 1)), "0007"],
            "weight": ["1"] * (n - 1) + ["0.5"],
            "level": ["1"] * (n // 2) + ["1.0"] * (n // 2 - 1) + ["NA"],
            "note": ["1"] * (n - 2) + ['two\nlines, and a "quote"', ""],
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    got = evaluate_files(
        tmp_path / "a.csv",
        y_true="y",
        y_proba="p",
        row_id="id",
        sample_weight="weight",
        fields=["level", "note"],
    )
    expected = evaluate(frame.y, frame.p, row_id=frame.id, sample_weight=frame.weight.astype(float))
    assert_same(got, expected)
    assert {name: field.n_levels for name, field in got.fields.items()} == {"level": 2, "note": 3}


def test_missing_values_are_counted_over_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(trueup.read.files, "_BATCH_ROWS", 100)
    p = np.linspace(0.1, 0.9, 1_000)
    p[[150, 151, 870]] = np.nan
    pd.DataFrame({"y": np.arange(1_000) % 2, "p": p}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="got 3 missing values in p, first at row 150"):
        evaluate_files(tmp_path / "a.parquet", y_true="y", y_proba="p")
