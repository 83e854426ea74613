"""Calibration errors over fields and bins, their levels and their worst cells."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.trueup.field_cells import cells_of

from trueup import (
    combine_fields,
    evaluate,
    expected_calibration_error,
    field_calibration,
    field_calibration_error,
)
from trueup.errors import InvalidInputError, UndefinedMetricError
from trueup.fields.calibration import shrunk_offsets
from trueup.fields.cells import squared_error
from trueup.fields.distribution import mean_absolute_deviation, two_sided_p_values
from trueup.fields.levels import read_levels

RNG = np.random.default_rng(0)
N = 3000
PROBA = RNG.beta(2.0, 5.0, N)
LABEL = (RNG.random(N) < PROBA).astype(float)
SITE = np.array([f"site {k}" for k in RNG.integers(0, 40, N) ** 2 // 40])
WEIGHT = RNG.uniform(0.2, 3.0, N)


def slow_field_error(y_true, y_proba, field, weight, *, relative, epsilon=0.01):
    total = 0.0
    for level in set(field):
        rows = [i for i, value in enumerate(field) if value == level]
        gap = math.fsum(weight[i] * (y_true[i] - y_proba[i]) for i in rows)
        if relative:
            size = math.fsum(weight[i] for i in rows)
            gap *= size / math.fsum(weight[i] * (y_true[i] + epsilon) for i in rows)
        total += abs(gap)
    return total / math.fsum(weight)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_field_error_equals_a_slow_twin(relative, weight):
    found = field_calibration_error(LABEL, PROBA, SITE, relative=relative, sample_weight=weight)
    ones = np.ones(N) if weight is None else weight
    expected = slow_field_error(LABEL, PROBA, SITE, ones, relative=relative)
    assert found == pytest.approx(expected, rel=1e-10)
    both = field_calibration(LABEL, PROBA, SITE, sample_weight=weight)
    assert (both.rce if relative else both.ece) == found


def test_field_error_by_hand():
    y_true, y_proba, field = [0, 1, 1, 0], [0.25, 0.5, 0.75, 0.5], [7, 7, 9, 9]
    assert field_calibration_error(y_true, y_proba, field) == 0.125
    relative = field_calibration_error(y_true, y_proba, field, relative=True, epsilon=0.5)
    assert relative == pytest.approx((0.25 / 1.0 + 0.25 / 1.0) / 4.0)


def test_integer_weights_equal_repeated_rows():
    repeats = RNG.integers(0, 4, N)
    rows = np.repeat(np.arange(N), repeats)
    weighted = field_calibration_error(LABEL, PROBA, SITE, sample_weight=repeats.astype(float))
    repeated = field_calibration_error(LABEL[rows], PROBA[rows], SITE[rows])
    assert weighted == pytest.approx(repeated, rel=1e-12)


def test_one_level_is_the_bias_in_the_mean():
    found = field_calibration_error(LABEL, PROBA, np.zeros(N, dtype=int))
    assert found == pytest.approx(abs(LABEL.mean() - PROBA.mean()), rel=1e-12)


def test_splitting_levels_never_lowers_the_error():
    finer = combine_fields(SITE, RNG.integers(0, 3, N))
    coarse = field_calibration_error(LABEL, PROBA, SITE)
    assert field_calibration_error(LABEL, PROBA, finer) >= coarse


def test_rare_levels_can_be_left_out():
    field = np.r_[np.zeros(N - 2, dtype=int), [1, 2]]
    found = field_calibration_error(LABEL, PROBA, field, min_count=2)
    expected = abs((LABEL - PROBA)[:-2].sum()) / (N - 2)
    assert found == pytest.approx(expected, rel=1e-12)
    with pytest.raises(UndefinedMetricError, match="min_count=9000 rows; got none"):
        field_calibration_error(LABEL, PROBA, field, min_count=9000)


@pytest.mark.parametrize(
    "wrap",
    [list, pd.Series, pl.Series, pd.Categorical, lambda v: pd.Series(v, dtype="category")],
    ids=["list", "pandas", "polars", "categorical", "category series"],
)
def test_levels_do_not_depend_on_the_container(wrap):
    expected = field_calibration(LABEL, PROBA, SITE)
    found = field_calibration(LABEL, PROBA, wrap(SITE.tolist()))
    assert found == expected
    assert found.cells.level.tolist() == expected.cells.level.tolist()


@pytest.mark.parametrize(
    ("field", "names"),
    [
        (np.array(["b", None, "a", np.nan], dtype=object), {"a", "b", "(missing)"}),
        ([3, 1, 3, 1], {"1", "3"}),
        ([1.0, np.nan, 2.0, 1.0], {"1", "2", "(missing)"}),
        ([True, False, True, True], {"True", "False"}),
        (pd.Series([1, None, 2, 1], dtype="Int64"), {"1", "2", "(missing)"}),
        (
            pd.Categorical(["a", None, "c", "a"], categories=["a", "b", "c"]),
            {"a", "c", "(missing)"},
        ),
        (
            np.array(["2013-01-01", "NaT", "2013-01-02", "NaT"], "M8[D]"),
            {"2013-01-01", "2013-01-02", "(missing)"},
        ),
        (pl.Series(["x", None, "y", "x"]), {"x", "y", "(missing)"}),
    ],
)
def test_missing_values_are_a_level_of_their_own(field, names):
    levels = read_levels(field, "field")
    assert set(levels.names) == names
    assert len(levels.names) == len(names)
    assert sorted(set(levels.codes.tolist())) == list(range(len(names)))


def test_infinite_numbers_are_levels():
    assert read_levels([1.0, np.inf, -np.inf, np.nan], "f").names == (
        "-inf",
        "1",
        "inf",
        "(missing)",
    )


def test_fractional_numbers_are_cut_at_their_quantiles():
    values = RNG.normal(size=1000)
    values[:50] = np.nan
    levels = read_levels(values, "price", n_quantiles=10)
    counts = dict(zip(levels.names, np.bincount(levels.codes), strict=True))
    assert counts.pop("(missing)") == 50
    assert len(counts) == 10
    assert max(counts.values()) - min(counts.values()) <= 2


def test_pairs_of_fields_are_levels():
    pair = combine_fields(["a", "a", "b", None], [1, 2, 2, 2])
    assert pair.tolist() == ["a & 1", "a & 2", "b & 2", "(missing) & 2"]
    with pytest.raises(InvalidInputError, match=r"as many rows as first \(2\); got 1"):
        combine_fields([1, 2], [1])


def test_rows_of_weight_zero_change_no_cell():
    weight = np.where(np.arange(N) % 5 == 0, 0.0, WEIGHT)
    kept = weight > 0.0
    with_zeros = field_calibration(LABEL, PROBA, SITE, sample_weight=weight).cells
    without = field_calibration(
        LABEL[kept], PROBA[kept], SITE[kept], sample_weight=weight[kept]
    ).cells
    for name in ("level", "observed", "predicted", "p_value", "offset"):
        np.testing.assert_array_equal(getattr(with_zeros, name), getattr(without, name))


@pytest.mark.parametrize("n", [N, 30 * N], ids=["few", "many"])
def test_weights_of_zero_and_one_leave_rows_out(n):
    rows = np.arange(n) % N
    kept = np.arange(n) % 3 > 0
    columns = LABEL[rows], PROBA[rows], SITE[rows]
    found = field_calibration(*columns, sample_weight=kept.astype(float)).cells
    expected = field_calibration(*(values[kept] for values in columns)).cells
    order = np.argsort(found.level), np.argsort(expected.level)
    for name in ("level", "observed", "predicted", "p_value", "low", "high"):
        ours, theirs = getattr(found, name)[order[0]], getattr(expected, name)[order[1]]
        if name == "level":
            assert ours.tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_certain_and_right_predictions_are_measured_without_a_warning(label):
    certain = np.full(12_000, label)
    result = field_calibration(certain, certain, np.arange(12_000) % 40)
    assert (result.ece, result.floor_high, result.n_discoveries) == (0.0, 0.0, 0)
    tiny = field_calibration(certain, np.full(12_000, 1e-300), np.arange(12_000) % 40)
    assert np.isfinite(tiny.cells.offset).all()


def test_certain_predictions_have_no_noise():
    cells = cells_of([0, 0, 1, 1], [0, 1, 1, 1], [0.0, 1.0, 0.0, 1.0])
    assert mean_absolute_deviation(cells).tolist() == [0.0, 0.0]
    assert two_sided_p_values(cells).tolist() == [1.0, 0.0]


def test_squared_error_is_the_mean_product_of_pairs():
    codes, y_true = [0, 0, 0, 1, 1, 2], [1, 0, 1, 0, 1, 1]
    p = np.array([0.2, 0.4, 0.3, 0.6, 0.1, 0.5])
    r = np.array(y_true) - p
    first = (r[0] * r[1] + r[0] * r[2] + r[1] * r[2]) / 3.0
    expected = (3.0 * first + 2.0 * r[3] * r[4]) / 5.0  # the cell of one row says nothing
    assert squared_error(cells_of(codes, y_true, p).sums) == pytest.approx(expected, rel=1e-12)
    assert squared_error(cells_of([0, 1], [0, 1], [0.5, 0.5]).sums) == 0.0


def test_floor_and_interval_are_reproducible_and_in_order():
    result = field_calibration(LABEL, PROBA, SITE)
    assert result == field_calibration(LABEL, PROBA, SITE)
    assert 0.0 < result.floor_low < result.floor < result.floor_high
    assert 0.0 < result.rce_floor_low < result.rce_floor < result.rce_floor_high
    assert result.debiased_low < result.debiased < result.debiased_high
    assert result.floor_low < result.ece < result.floor_high  # the model is right


def test_weighted_floor_of_equal_weights_is_the_plain_one():
    plain = field_calibration(LABEL, PROBA, SITE)
    doubled = field_calibration(LABEL, PROBA, SITE, sample_weight=np.full(N, 2.0))
    assert doubled.floor == pytest.approx(plain.floor, rel=0.05)
    assert doubled.debiased == pytest.approx(plain.debiased, rel=1e-10)
    for name, column in doubled.cells.to_columns().items():
        np.testing.assert_array_equal(column, plain.cells.to_columns()[name])


def test_worst_cell_is_found_with_its_sign():
    y_proba = np.where(SITE == "site 9", np.minimum(1.0, 2.5 * PROBA), PROBA)
    result = field_calibration(LABEL, y_proba, SITE)
    cells = result.cells
    assert cells.level[0] == "site 9"
    assert cells.q_value[0] < 0.01
    assert cells.difference[0] < 0.0
    assert cells.offset[0] < 0.0
    assert cells.low[0] < cells.difference[0] < cells.high[0] < 0.0
    assert result.n_discoveries == 1
    rows = SITE == "site 9"
    assert cells.n[0] == rows.sum()
    assert cells.observed[0] == pytest.approx(LABEL[rows].mean())
    assert cells.predicted[0] == pytest.approx(y_proba[rows].mean())


def test_cells_are_sorted_and_make_a_table():
    cells = field_calibration(LABEL, PROBA, SITE).cells
    assert (np.diff(cells.p_value) >= 0.0).all()
    assert (cells.q_value >= cells.p_value).all()
    table = cells.to_columns()
    assert len({len(column) for column in table.values()}) == 1
    assert table["level"].dtype.kind == "U"


def test_offsets_are_shrunk_to_nothing_without_spread():
    y_true = np.tile([0.0, 1.0], 100)
    assert (
        shrunk_offsets(cells_of(np.arange(200) // 2, y_true, np.full(200, 0.5)).sums).max() == 0.0
    )


def test_to_dict_is_plain_json_without_cells():
    plain = field_calibration(LABEL, PROBA, SITE).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert "cells" not in plain
    assert {"ece", "rce", "floor", "rce_floor", "debiased", "n_levels"} <= plain.keys()


def test_one_row_a_level_has_no_interval_of_the_debiased_error():
    result = field_calibration([0, 1, 1, 0], [0.4, 0.6, 0.3, 0.2], [0, 1, 2, 3])
    assert (result.debiased_low, result.debiased_high) == (None, None)


def test_evaluate_measures_several_fields():
    pair = combine_fields(SITE, np.arange(N) % 2)
    result = evaluate(LABEL, PROBA, fields={"site": SITE, "site x parity": pair})
    assert result.fields["site"].ece == pytest.approx(field_calibration_error(LABEL, PROBA, SITE))
    assert result.fields["site x parity"].n_levels > result.fields["site"].n_levels


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: field_calibration_error(LABEL, PROBA, SITE, epsilon=0.0), "epsilon must be pos"),
        (
            lambda: field_calibration_error(LABEL, PROBA, SITE[:9]),
            r"rows as y_true \(3000\); got 9",
        ),
        (lambda: field_calibration_error(LABEL, PROBA[:9], SITE), "y_proba must have as many rows"),
        (lambda: field_calibration_error(LABEL, PROBA + 1, SITE), r"y_proba must be in \[0, 1\]"),
        (
            lambda: field_calibration_error(LABEL, PROBA, np.zeros((N, 2))),
            "field must be one-dimensional",
        ),
        (
            lambda: field_calibration_error(LABEL, PROBA, SITE, n_quantiles=1),
            "n_quantiles must be at least 2; got 1",
        ),
        (lambda: expected_calibration_error(LABEL, PROBA, n_bins=0), "n_bins must be an integer"),
        (lambda: expected_calibration_error(LABEL, PROBA, n_bins=2.5), "n_bins must be an integer"),
        (
            lambda: expected_calibration_error(LABEL, PROBA, strategy="kmeans"),
            "strategy must be .* got 'kmeans'",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_no_rows_are_undefined():
    with pytest.raises(UndefinedMetricError, match="at least one row; got 0"):
        field_calibration_error([], [], [])


def test_codes_with_gaps_are_levels_like_any_integers():
    codes = np.array([7, 0, 7, 3, 3, 9, 0, 7, 9, 9])
    table, sorted_out = read_levels(codes, "site"), read_levels(codes.astype(str), "site")
    assert table.names == sorted_out.names == ("0", "3", "7", "9")
    assert table.codes.tolist() == sorted_out.codes.tolist()
