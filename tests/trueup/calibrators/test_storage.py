"""Calibrators are stored as JSON and npz, and come back as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone

from trueup.calibrators import (
    FieldOffsetCalibrator,
    Guarded,
    HistogramCalibrator,
    ILPSCalibrator,
    IsotonicCalibrator,
    NeuralCalibrator,
    PlattCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
    load_calibrator,
)
from trueup.errors import CorruptFileError, InvalidInputError

CALIBRATORS = [
    ShiftCalibrator(),
    PlattCalibrator(),
    TemperatureCalibrator(),
    IsotonicCalibrator(),
    HistogramCalibrator(7),
    ILPSCalibrator(knots="paper"),
    NeuralCalibrator(epochs=1, hidden=(8,)),
    FieldOffsetCalibrator(fields=["site"]),
    Guarded(FieldOffsetCalibrator()),
    Guarded(ShiftCalibrator()),
]


def rows(n=1500):
    rng = np.random.default_rng(0)
    margin, site = rng.normal(size=n), rng.integers(0, 4, n)
    y = rng.random(n) < expit(margin + np.array([-1.0, 0.0, 1.0, 2.0])[site])
    fields = {"site": np.array([f"s{value}" for value in site], dtype=object)}
    return expit(margin), np.where(y, "yes", "no").astype(object), fields


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_loaded_calibrator_predicts_the_same(calibrator, tmp_path):
    p, y, fields = rows()
    fitted = clone(calibrator).fit(p, y, fields=fields)
    fitted.save(tmp_path / "calibrator")
    loaded = type(calibrator).load(tmp_path / "calibrator")
    np.testing.assert_array_equal(
        loaded.predict_proba(p, fields=fields), fitted.predict_proba(p, fields=fields)
    )
    assert loaded.predict(p, fields=fields).tolist() == fitted.predict(p, fields=fields).tolist()
    assert {path.suffix for path in (tmp_path / "calibrator").iterdir()} == {".json", ".npz"}
    assert repr(loaded.get_params()) == repr(fitted.get_params()) or "[" in repr(calibrator)


@pytest.mark.parametrize("calibrator", [ShiftCalibrator(), NeuralCalibrator(epochs=1)], ids=repr)
def test_multiclass_calibrator_comes_back(calibrator, tmp_path):
    rng = np.random.default_rng(1)
    p, y = softmax(rng.normal(size=(300, 3)), axis=1), rng.integers(0, 3, 300)
    fitted = clone(calibrator).fit(p, y, fields={"site": y})
    fitted.save(tmp_path)
    loaded = load_calibrator(tmp_path)
    np.testing.assert_array_equal(
        loaded.predict_proba(p, fields={"site": y}), fitted.predict_proba(p, fields={"site": y})
    )


def test_loading_and_predicting_need_no_torch(tmp_path):
    p, y, fields = rows()
    NeuralCalibrator(epochs=1).fit(p, y, fields=fields).save(tmp_path)
    code = (
        "import sys; from trueup.calibrators import load_calibrator;"
        f"c = load_calibrator({str(tmp_path)!r});"
        "c.predict_proba([0.5], fields={'site': ['s1']}); print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_pickle_in_the_place_of_arrays_is_refused(tmp_path):
    p, y, _ = rows()
    IsotonicCalibrator().fit(p, y).save(tmp_path)
    np.savez(tmp_path / "calibrator.npz", a0=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_calibrator(tmp_path)


def test_loading_as_another_class_is_an_error(tmp_path):
    p, y, _ = rows()
    ShiftCalibrator().fit(p, y).save(tmp_path)
    with pytest.raises(InvalidInputError, match="must hold a PlattCalibrator; got a Shift"):
        PlattCalibrator.load(tmp_path)


def test_a_folder_without_a_calibrator_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"path must hold calibrator\.json"):
        load_calibrator(tmp_path)


def test_a_newer_format_is_named(tmp_path):
    p, y, _ = rows()
    ShiftCalibrator().fit(p, y).save(tmp_path)
    document = json.loads((tmp_path / "calibrator.json").read_text())
    (tmp_path / "calibrator.json").write_text(json.dumps(document | {"format": 99}))
    with pytest.raises(InvalidInputError, match="path must hold format 1 or older; got 99"):
        load_calibrator(tmp_path)


def changed(folder, change):
    document = json.loads((folder / "calibrator.json").read_text())
    change(document)
    (folder / "calibrator.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    "name", ["import_module", "Calibrator", "CalibratedModel", "__getattr__", ["ShiftCalibrator"]]
)
def test_a_class_outside_of_the_table_is_refused(name, tmp_path):
    p, y, _ = rows()
    ShiftCalibrator().fit(p, y).save(tmp_path)
    changed(tmp_path, lambda document: document["calibrator"].update({"class": name}))
    with pytest.raises(CorruptFileError, match="one of the calibrators"):
        load_calibrator(tmp_path)


@pytest.mark.parametrize("name", ["predict_proba", "__class__", "_fit"])
def test_nothing_but_the_state_is_set(name, tmp_path):
    p, y, _ = rows()
    ShiftCalibrator().fit(p, y).save(tmp_path)
    changed(tmp_path, lambda document: document["calibrator"]["state"]["mapping"].update({name: 1}))
    with pytest.raises(CorruptFileError, match=r"the parts .* and no others"):
        load_calibrator(tmp_path)


@pytest.mark.parametrize("value", [None, "1", True, 1e400, float("nan"), 10**400, [1.0], {"a": 1}])
def test_a_state_of_another_type_or_range_is_refused(value, tmp_path):
    p, y, _ = rows()
    PlattCalibrator().fit(p, y).save(tmp_path)
    changed(
        tmp_path, lambda document: document["calibrator"]["state"]["mapping"].update(slope_=value)
    )
    with pytest.raises(CorruptFileError, match=r"as calibrator\.state\.slope_"):
        load_calibrator(tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"a0": np.array(["no", "yes"]), "extra": np.zeros(3)},
        {"a0": np.array(["no", "yes"]), "a1": np.zeros(2), "a2": np.zeros(3)},
        {"a0": np.array(["no", "yes"]), "a1": np.array([0.2, 0.1]), "a2": np.zeros(2)},
        {"a0": np.array(["no", "yes"]), "a1": np.zeros((1, 1)), "a2": np.zeros(1)},
    ],
    ids=["unknown", "lengths", "order", "dimensions"],
)
def test_arrays_that_no_fit_leaves_are_refused(arrays, tmp_path):
    p, y, _ = rows()
    IsotonicCalibrator().fit(p, y).save(tmp_path)
    np.savez(tmp_path / "calibrator.npz", **arrays)
    changed(tmp_path, lambda document: document.pop("arrays"))
    with pytest.raises(CorruptFileError):
        load_calibrator(tmp_path)


def test_guards_inside_of_guards_without_end_are_refused(tmp_path):
    inner = '{"class": "Guarded", "params": {"mapping": {"calibrator": '
    ShiftCalibrator().save(tmp_path)
    (tmp_path / "calibrator.json").write_text('{"format": 1, "calibrator": ' + inner * 5000)
    with pytest.raises(CorruptFileError):
        load_calibrator(tmp_path)


KILLED_AT_EACH_STEP = """
import os, sys
from pathlib import Path
from trueup.calibrators import load_calibrator

folder = Path(sys.argv[1])
old, new = load_calibrator(folder / "old"), load_calibrator(folder / "new")
for step in range(100):
    old.save(folder / "saved")
    child = os.fork()
    if child == 0:
        calls = 0
        def kill(event, args):
            global calls
            calls += event.startswith(("open", "os.")) and "saved" in str(args)
            if calls > step:
                os._exit(9)
        sys.addaudithook(kill)
        new.save(folder / "saved")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(status, type(load_calibrator(folder / "saved")).__name__)
    if status == 0:
        break
"""


@pytest.mark.skipif(  # Windows has none, and a new interpreter a step would take minutes
    not hasattr(os, "fork"), reason="each step is killed in a fork"
)
def test_a_save_that_is_killed_at_any_step_leaves_the_old_calibrator_or_the_new_one(tmp_path):
    p, y, _ = rows()
    IsotonicCalibrator().fit(p, y).save(tmp_path / "old")
    HistogramCalibrator().fit(p, y).save(tmp_path / "new")
    command = [sys.executable, "-c", KILLED_AT_EACH_STEP, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    *killed, last = run.stdout.splitlines()
    assert len(killed) >= 8
    assert set(killed) == {"9 IsotonicCalibrator", "9 HistogramCalibrator"}
    assert last == "0 HistogramCalibrator"
