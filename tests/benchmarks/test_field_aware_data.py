"""The loaders of the paper's public data sets, on small files in the original formats."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.scripts import script


@pytest.fixture(scope="module")
def data():
    with script("benchmarks/reproduce/field_aware_data.py") as module:
        yield module


def test_criteo_reads_tabs_without_a_header(data, tmp_path):
    numbers, texts = ["1", "", "3"] + ["4"] * 10, [f"c{i}" for i in range(26)]
    lines = ["\t".join([label, *numbers, *texts]) for label in ("0", "1")]
    texts[10] = ""
    lines.append("\t".join(["0", *numbers, *texts]))
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    table = data.criteo(tmp_path)
    assert table.y.tolist() == [0.0, 1.0, 0.0]
    assert table.field == "C11"
    assert table.columns["C11"].tolist()[:2] == ["c10", "c10"]
    assert pd.isna(table.columns["C11"][2])
    assert np.isnan(table.columns["I2"]).all()
    assert len(table.columns) == 39


def test_avazu_cuts_its_parts_between_days(data, tmp_path):
    hours = [f"1410{day:02d}{hour:02d}" for day in range(21, 32) for hour in (0, 23)]
    frame = pd.DataFrame(
        {
            "id": [f"{i}e19" for i in range(len(hours))],
            "click": [0, 1] * 11,
            "hour": hours,
            "C1": 1005,
            "site_id": ["1fbe01fe", "85f751fd"] * 11,
        }
    )
    frame.sample(frac=1.0, random_state=0).to_csv(tmp_path / "train.csv", index=False)
    table = data.avazu(tmp_path)
    train, dev, test = table.parts()
    assert [len(part) for part in (train, dev, test)] == [12, 4, 4]
    assert set(table.days[dev].tolist()) == {141027, 141028}
    assert set(table.columns["hour"].tolist()) == {"00", "23"}
    assert set(table.columns) == {"hour", "C1", "site_id"}


def test_porto_seguro_leaves_out_the_id(data, tmp_path):
    frame = pd.DataFrame(
        {"id": [7, 9], "target": [0, 1], "ps_ind_03": [2, 5], "ps_reg_01": [0.7, 1.0]}
    )
    frame.to_csv(tmp_path / "train.csv", index=False)
    table = data.porto_seguro(tmp_path)
    assert list(table.columns) == ["ps_ind_03", "ps_reg_01"]
    assert table.columns[table.field].tolist() == [2, 5]
    assert table.y.tolist() == [0.0, 1.0]


def test_lending_club_reads_the_label_from_the_status(data, tmp_path):
    known = (
        "loan_amnt term int_rate installment grade sub_grade emp_length home_ownership annual_inc"
    )
    known += " verification_status purpose addr_state dti delinq_2yrs inq_last_6mths open_acc"
    known += " pub_rec revol_bal revol_util total_acc"
    status = ["Fully Paid", "Charged Off", "Current", "Default", None]
    status += ["Does not meet the credit policy. Status:Charged Off"]
    frame = pd.DataFrame({name: ["1"] * 6 for name in known.split()})
    frame = frame.assign(addr_state=list("ABCDEF"), loan_status=status, recoveries=1.0)
    frame.to_csv(tmp_path / "loan.csv", index=False)
    table = data.lending_club(tmp_path)
    assert table.y.tolist() == [0.0, 1.0, 0.0, 1.0, 1.0]
    assert table.columns["addr_state"].tolist() == list("ABCDF")
    assert "recoveries" not in table.columns


def test_rows_limits_what_is_read(data, tmp_path):
    frame = pd.DataFrame({"id": range(9), "target": [0, 1, 0] * 3, "ps_ind_03": range(9)})
    frame.to_csv(tmp_path / "train.csv", index=False)
    assert len(data.porto_seguro(tmp_path, 4).y) == 4


def test_parts_are_sixty_twenty_twenty_in_order(data):
    table = data.Table({"z": np.arange(10)}, np.zeros(10), "z", "index")
    assert [part.tolist() for part in table.parts()] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize("n_days", [1, 2, 3])
def test_avazu_of_few_days_is_cut_by_rows_and_says_so(data, tmp_path, capsys, n_days):
    hours = [f"1410{21 + day}{hour:02d}" for day in range(n_days) for hour in range(20)]
    frame = pd.DataFrame({"id": range(len(hours)), "click": 0, "hour": hours, "site_id": "1fbe"})
    frame.to_csv(tmp_path / "train.csv", index=False)
    train, dev, test = data.avazu(tmp_path).parts()
    assert [len(part) for part in (train, dev, test)] == [12 * n_days, 4 * n_days, 4 * n_days]
    assert f"avazu: {n_days} day" in capsys.readouterr().out
