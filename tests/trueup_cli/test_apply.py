"""``trueup apply``, and the table of offsets that needs no trueup."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.special import expit

from trueup.calibrators import load_calibrator
from trueup_cli.apply import apply
from trueup_cli.calibrate import calibrate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of predictions whose sites are off, and a calibrator of it with its two tables."""
    folder, rng, n = tmp_path_factory.mktemp("apply"), np.random.default_rng(0), 6000
    margin, site, age = rng.normal(size=n), rng.integers(0, 6, n), rng.normal(40.0, 9.0, n)
    truth = margin + np.linspace(-1.0, 1.0, 6)[site] + 0.05 * (age - 40.0)
    y = (rng.random(n) < expit(truth)).astype(int)
    names = np.array([f"s{k}" for k in site])
    frame = pd.DataFrame(
        {"y": y, "p": expit(margin), "site": names, "age": age, "day": np.arange(n)}
    )
    frame.to_parquet(folder / "rows.parquet")
    run(calibrate, folder / "rows.parquet", "--target", "y", "--proba", "p", "--field", "site",
        "--field", "age", "--time", "day", "--output", folder / "fitted",
        "--table", folder / "offsets.json")  # fmt: skip
    run(calibrate, folder / "rows.parquet", "--target", "y", "--proba", "p", "--field", "site",
        "--field", "age", "--time", "day", "--table", folder / "offsets.csv")  # fmt: skip
    return folder


def run(command, *arguments, code=0):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def applied(folder, rows, output, *more, code=0):
    wanted = ("--calibrator", folder / "fitted", "--proba", "p", "--output", output)
    return run(apply, rows, *wanted, *more, code=code)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_saved_calibrator_is_applied_to_a_file(folder, tmp_path, ending):
    output = tmp_path / f"out.{ending}"
    assert "6000 rows written" in applied(folder, folder / "rows.parquet", output)
    frame = pd.read_csv(output) if ending == "csv" else pd.read_parquet(output)
    fields = {name: frame[name] for name in ("site", "age")}
    expected = load_calibrator(folder / "fitted").predict_proba(frame["p"], fields=fields)[:, 1]
    np.testing.assert_allclose(frame["calibrated_p"], expected, rtol=1e-12)
    assert [*frame.columns] == ["y", "p", "site", "age", "day", "calibrated_p"]


def test_levels_that_the_fit_had_not_seen_are_counted(folder, tmp_path):
    rows = tmp_path / "new.csv"
    pd.DataFrame({"p": [0.2, 0.3], "site": ["s1", "new"], "age": [30.0, 50.0]}).to_csv(rows)
    assert "1 row with a site that the fit had not seen" in applied(
        folder, rows, tmp_path / "o.csv"
    )


def test_nothing_is_overwritten_without_a_word(folder, tmp_path):
    output = tmp_path / "out.csv"
    applied(folder, folder / "rows.parquet", output)
    assert "which exists" in applied(folder, folder / "rows.parquet", output, code=2)
    applied(folder, folder / "rows.parquet", output, "--overwrite")
    before = (folder / "fitted/calibrator.json").read_bytes()
    again = (
        folder / "rows.parquet",
        "--target",
        "y",
        "--proba",
        "p",
        "--output",
        folder / "fitted",
    )
    assert "which holds one" in run(calibrate, *again, code=2)
    assert (folder / "fitted/calibrator.json").read_bytes() == before


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ({"p": [0.5]}, (), "column 'site' must be in"),
        ({"p": [1.5], "site": ["s1"], "age": [1.0]}, (), "--proba 'p' must hold probabilities"),
        ({"p": [0.5], "site": [1], "age": [1.0]}, (), "fields must keep their type"),
        ({"p": [0.5], "site": ["s1"], "age": [1.0]}, ("--column", "age"), "must be a new column"),
    ],
)
def test_bad_input_is_named(folder, tmp_path, columns, more, message):
    rows = tmp_path / "rows.csv"
    pd.DataFrame(columns).to_csv(rows, index=False)
    assert message in applied(folder, rows, tmp_path / "out.csv", *more, code=2)


def slow_calibrated(table, row):
    """Apply the JSON table with nothing but the standard library."""
    p = min(max(row["p"], table["clip"]), 1.0 - table["clip"])
    logit, shape = math.log(p / (1.0 - p)), table["map"]
    knots, heights, slope = shape["logits"], shape["mapped"], shape["tail_slope"]
    if logit <= knots[0]:
        mapped = heights[0] + slope * (logit - knots[0])
    elif logit >= knots[-1]:
        mapped = heights[-1] + slope * (logit - knots[-1])
    else:
        k = next(i for i in range(len(knots)) if knots[i + 1] > logit)
        share = (logit - knots[k]) / (knots[k + 1] - knots[k])
        mapped = heights[k] + share * (heights[k + 1] - heights[k])
    for name, field in table["fields"].items():
        if field["kind"] == "bin":
            k = sum(edge is None or edge <= row[name] for edge in field["levels"]) - 1
            mapped += field["offsets"][k]
        else:
            mapped += dict(zip(field["levels"], field["offsets"], strict=True)).get(row[name], 0.0)
    return 1.0 / (1.0 + math.exp(-mapped))


def test_the_table_needs_no_trueup(folder):
    table = json.loads((folder / "offsets.json").read_text())
    frame = pd.read_parquet(folder / "rows.parquet").head(300)
    fields = {name: frame[name] for name in ("site", "age")}
    expected = load_calibrator(folder / "fitted").predict_proba(frame["p"], fields=fields)[:, 1]
    own = [slow_calibrated(table, row) for row in frame.to_dict("records")]
    np.testing.assert_allclose(own, expected, rtol=1e-9)


def test_csv_holds_the_numbers_of_json(folder):
    table = json.loads((folder / "offsets.json").read_text())
    with open(folder / "offsets.csv") as stream:
        lines = list(csv.DictReader(stream))
    own = {
        line["level"]: float(line["value"])
        for line in lines
        if line["field"] == "site" and line["level"]
    }
    site = table["fields"]["site"]
    assert own == dict(zip(site["levels"], site["offsets"], strict=True))
    knots = [float(line["level"]) for line in lines if line["part"] == "map"]
    assert knots == table["map"]["logits"]


def test_what_was_written_is_told_as_json(folder, tmp_path):
    output = tmp_path / "out.csv"
    told = json.loads(applied(folder, folder / "rows.parquet", output, "--json"))
    assert told == {"n": 6000, "output": str(output), "column": "calibrated_p", "remarks": []}
