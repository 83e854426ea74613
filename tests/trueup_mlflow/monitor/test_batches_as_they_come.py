"""Batches as production gives them: empty cells, text for numbers, decimals, files of no bytes."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_mlflow.monitor.batch.batches import say_empty
from trueup_mlflow.monitor.batch.schema import Schema
from trueup_mlflow.monitor.batch.tables import checked_ids, read_table


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_an_empty_cell_of_a_csv_file_is_a_missing_id_and_no_id(kind, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,a\n1,0.5\n,0.25\n3,0.125\n")
    table = read_table(path, row_id="id", kind=kind)
    assert table["id"].isna().tolist() == [False, True, False]
    with pytest.raises(InvalidInputError, match="row_id must not hold missing values"):
        checked_ids(table, "id", kind)


def schema():
    return Schema("y", None, ("a", "b"), False, means={"a": 0.0}, spreads={"a": 1.0})


def test_text_where_the_reference_had_numbers_is_refused_by_name_and_type():
    batch = pd.DataFrame({"a": ["0.5", "0.25"], "b": ["x", "y"]})
    with pytest.raises(InvalidInputError) as refused:
        schema().features_of(batch)
    assert "column 'a' must hold numbers as in the reference; got" in str(refused.value)
    assert "0.25" not in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [[1, None], np.array([1, None], dtype=object), [np.nan, np.nan], [None, None], [True, False]],
    ids=["missing", "objects", "nan", "nothing", "truth"],
)
def test_numbers_of_any_type_and_columns_of_nothing_are_taken(values):
    batch = pd.DataFrame({"a": values, "b": "x"})
    moved = dict(schema().moved(schema().features_of(batch)))
    assert set(moved) <= {"a"}


def test_decimals_of_a_database_are_numbers(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"a": [Decimal("0.50"), None], "b": ["x", None]}).to_parquet(path)
    table = read_table(path)
    assert table["a"].dtype == np.float64
    assert table["b"][0] == "x"
    assert dict(schema().moved(schema().features_of(table)))["a"] == 0.5


def test_a_file_of_no_bytes_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "rows.csv").write_text("")
    with pytest.raises(InvalidInputError) as refused:
        read_table(tmp_path / "rows.csv")
    assert str(refused.value).count("must be") == 1


def test_periods_without_rows_between_others_are_named():
    january, march, may = (pd.Period(f"2026-{month:02d}", "M") for month in (1, 3, 5))
    with pytest.warns(
        TrueupWarning, match="no rows of 2026-02, 2026-04: there is no batch of them"
    ):
        say_empty([january, march, may])
    with pytest.warns(TrueupWarning, match="no rows of 2026-02: there is no batch of it"):
        say_empty([january, march])
    with pytest.warns(TrueupWarning, match="2026-01-06 and 24 more"):
        say_empty([pd.Period("2026-01-01", "D"), pd.Period("2026-01-31", "D")])
    say_empty([january])
    say_empty([])
