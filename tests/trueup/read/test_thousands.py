"""A separator of thousands is never taken for the decimal point, in whatever reads the file."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from trueup import evaluate_files
from trueup.errors import InvalidInputError
from trueup.read.csv_files import Dialect
from trueup.read.tables import read_columns, read_file
from trueup_cli.app import app


def written(folder, cells, sep=","):
    """Return a file of a text column and the cells, which are quoted where that is needed."""
    quoted = [f'"{cell}"' if sep in cell else cell for cell in cells]
    path = folder / "a.csv"
    path.write_text(f"n{sep}x\n" + "".join(f"a{sep}{cell}\n" for cell in quoted))
    return path


AMBIGUOUS = {
    "whole numbers of two magnitudes": (["543", "2,306", "7"], ",", 1),
    "millions": (["1,234,567", "12"], ",", 0),
    "negative numbers": (["-2,306"], ",", 0),
    "beside a decimal point": (["543.19", "2,306"], ",", 1),
    "beside a missing value": (["NA", "", "2,306"], ",", 2),
    "points between semicolons": (["543", "2.306"], ";", 1),
    "points between tabs": (["2.306", "1.234.567"], "\t", 0),
    "commas between semicolons": (["543", "2,306"], ";", 1),
}
DECIMALS = {
    "a leading zero": (["0,123", "0,457"], ",", [0.123, 0.457]),
    "a leading zero beside another": (["0,123", "1,250"], ",", [0.123, 1.25]),
    "four digits before it": (["2306,285", "701,691"], ",", [2306.285, 701.691]),
    "two digits after it": (["2,306", "0", "1,25"], ";", [2.306, 0.0, 1.25]),
    "points between commas": (["543", "2.306"], ",", [543.0, 2.306]),
    "points between semicolons": (["2.306", "-0.5"], ";", [2.306, -0.5]),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
@pytest.mark.parametrize("role", ["number", "label", "any", "whole file"])
def test_numbers_that_can_be_read_in_two_ways_are_refused(name, role, tmp_path):
    cells, sep, row = AMBIGUOUS[name]
    path = written(tmp_path, cells, sep)
    with pytest.raises(InvalidInputError, match="can be read in one way") as error:
        read_file(path) if role == "whole file" else read_columns(path, {"x": role})
    assert f"column 'x' of {path}" in str(error.value)
    assert f"{cells[row]!r} in row {row}, counted from 0 (line {row + 2}" in str(error.value)


@pytest.mark.filterwarnings("ignore:a.csv was read with")
@pytest.mark.parametrize("name", DECIMALS)
def test_numbers_that_only_a_decimal_point_explains_are_read(name, tmp_path):
    cells, sep, numbers = DECIMALS[name]
    path = written(tmp_path, cells, sep)
    assert read_columns(path, {"x": "number"})["x"].tolist() == numbers
    assert read_file(path).column("x").to_pylist() == numbers


@pytest.mark.filterwarnings("ignore:a.csv was read with")
def test_what_the_user_says_settles_it(tmp_path):
    path = written(tmp_path, ["543", "2,306"])
    dialect = Dialect(decimal=",")
    assert read_columns(path, {"x": "number"}, dialect=dialect)["x"].tolist() == [543.0, 2.306]
    with pytest.raises(InvalidInputError, match=r"got '2,306'. Write the numbers without"):
        read_columns(path, {"x": "number"}, dialect=Dialect(decimal="."))


@pytest.mark.filterwarnings("ignore:a.csv was read with")
@pytest.mark.parametrize("role", ["text", "id", "level"])
def test_text_is_not_asked_what_its_commas_mean(role, tmp_path):
    path = written(tmp_path, ["543", "2,306"])
    assert len(read_columns(path, {"x": role})["x"]) == 2


def test_words_beside_it_make_a_column_text(tmp_path):
    path = written(tmp_path, ["shop", "2.306"], ";")
    with pytest.warns(match="was read with"):
        assert read_file(path).column("x").to_pylist() == ["shop", "2.306"]


def test_a_number_that_the_sample_cuts_off_is_no_evidence(tmp_path, monkeypatch):
    path = written(tmp_path, ["2,306", "5,678"])
    monkeypatch.setattr("trueup.read.csv_files._SAMPLE_BYTES", len(path.read_bytes()) - 4)
    with pytest.raises(InvalidInputError, match="'2,306' in row 0"):
        read_file(path)


def test_commands_refuse_it_too(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n" + '543,512\n"2,306","3,826"\n' * 20)
    with pytest.raises(InvalidInputError, match="column 'y'"):
        evaluate_files(path, y_true="y", y_proba="p", loss="mean_squared_error")
    evaluated = ["evaluate", str(path), "--target", "y", "--pred", "p", "--loss"]
    resampled = ["resample", "sklearn.linear_model:LinearRegression", str(path), "--target", "y"]
    for command in (evaluated, [*resampled, "--loss"]):
        run = CliRunner().invoke(app, [*command, "mean_squared_error"])
        assert run.exit_code == 2
        assert "'2,306' in row 1, counted from 0 (line 3 of the file)" in run.stderr
