"""Calibrators are stored as JSON and npz, and come back as they were."""

from __future__ import annotations

import json
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
from trueup.errors import InvalidInputError

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
