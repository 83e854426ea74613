"""Calibration errors of plain columns equal those that are read with care, on both engines."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from trueup import expected_calibration_error, field_calibration_error
from trueup._kernels import numpy_engine
from trueup.errors import InvalidInputError
from trueup.fields.columns import sums_by_bin, sums_by_code

N = 4_000


pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture
def rows():
    rng = np.random.default_rng(2)
    proba = rng.random(N)
    proba[:32] = np.r_[0.0, 1.0, np.arange(30) / 15 % 1.0]  # on the edges too
    return (rng.random(N) < proba).astype(np.float64), proba, rng.integers(0, 300, N) * 3


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("min_count", [0, 12])
@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint32])
def test_field_error_of_codes_is_that_of_their_names(relative, min_count, dtype, rows):
    y_true, proba, code = rows
    options = {"relative": relative, "min_count": min_count}
    found = field_calibration_error(y_true, proba, code.astype(dtype), **options)
    expected = field_calibration_error(y_true, proba, code.astype(str), **options)
    assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n_bins", [1, 15, 100])
def test_error_over_bins_is_a_loop_over_the_edges(n_bins, rows):
    y_true, proba, _ = rows
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    gaps = [
        (y_true - proba)[(proba > low) & (proba <= high) | (proba == 0.0) & (low == 0.0)].sum()
        for low, high in pairwise(edges)
    ]
    found = expected_calibration_error(y_true, proba, n_bins=n_bins)
    assert found == pytest.approx(np.abs(gaps).sum() / N, abs=1e-13)


def test_other_forms_of_the_columns_give_the_same(rows):
    y_true, proba, code = rows
    field_error = field_calibration_error(y_true, proba, code)
    error = expected_calibration_error(y_true, proba)
    for label in (y_true.astype(bool), y_true.astype(np.int8), y_true.tolist()):
        assert field_calibration_error(label, proba, code) == pytest.approx(field_error, abs=1e-13)
        assert expected_calibration_error(label, proba) == pytest.approx(error, abs=1e-13)
    ones = np.ones(N)
    weighted = field_calibration_error(y_true, proba, code, sample_weight=ones)
    assert weighted == pytest.approx(field_error, abs=1e-13)
    weighted = expected_calibration_error(y_true, proba, sample_weight=ones)
    assert weighted == pytest.approx(error, abs=1e-13)
    strided = np.repeat(proba, 2)[::2]
    assert field_calibration_error(y_true, strided, code) == pytest.approx(field_error, abs=1e-13)


def test_codes_that_are_no_index_are_levels_all_the_same(rows):
    y_true, proba, code = rows
    for other in (code - 7, code + 10**12):
        found = field_calibration_error(y_true, proba, other)
        expected = field_calibration_error(y_true, proba, code.astype(str))
        assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, 2.0, "y_true must be 0 or 1; got 2.0 at index 1234"),
        (0, np.nan, "y_true must be finite; got nan at index 1234"),
        (1, -0.1, r"y_proba must be in \[0, 1\]; got -0.1 at index 1234"),
        (1, np.nan, "y_proba must be finite; got nan at index 1234"),
    ],
)
def test_a_bad_row_is_refused_by_its_index(column, value, message, rows):
    columns = [values.copy() for values in rows]
    columns[column][1234] = value
    with pytest.raises(InvalidInputError, match=message):
        field_calibration_error(*columns)
    with pytest.raises(InvalidInputError, match=message):
        expected_calibration_error(*columns[:2])


def test_one_pass_is_taken_by_the_compiled_engine(rows, kernels):
    inner = np.linspace(0.0, 1.0, 16)[1:-1]
    passes = sums_by_code(*rows, None), sums_by_bin(*rows[:2], None, inner)
    assert all((sums is not None) == (kernels is not numpy_engine) for sums in passes)
