"""Both engines against plain loops, what the compiled one refuses, and the package without it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.engines import require_engine

from trueup._kernels.grid import LIMIT, N_BINS, ORDER, WIDTH
from trueup.losses import solve_logit_shift

MASK = (1 << 64) - 1


def splitmix64(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("weighted", [False, True])
def test_deposit_adds_the_powers_of_the_place_in_the_bin(kernels, weighted, rng):
    logit = np.r_[rng.uniform(-LIMIT, LIMIT, 500), -LIMIT, 0.0, np.nextafter(LIMIT, 0.0)]
    group, label = rng.integers(0, 2, len(logit)), rng.integers(0, 2, len(logit))
    weight = rng.random(len(logit)) if weighted else None
    table = np.zeros((4 * N_BINS, ORDER))
    kernels.deposit(logit, group, label.astype(float), weight, table)
    expected = np.zeros_like(table)
    for i, x in enumerate(logit):
        place = x / WIDTH - np.floor(x / WIDTH)
        powers = (2.0 * place - 1.0) ** np.arange(ORDER)
        row = N_BINS * (2 * group[i] + label[i]) + int(np.floor(x / WIDTH)) + N_BINS // 2
        expected[row] += (1.0 if weight is None else weight[i]) * powers
    np.testing.assert_allclose(table, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_hash_sums_equal_a_loop_of_python_integers(kernels, weighted, rng):
    row_id = rng.integers(0, 2**63, 300).astype(np.uint64)
    label = np.where(rng.random(300) < 0.5, -0.0, 1.0)
    weight = rng.random(300) if weighted else None
    low_sum = high_sum = 0
    for i in range(300):
        x = int(row_id[i]) * 0xD6E8FEB86659FD93
        x += int(np.float64(abs(label[i])).view(np.uint64)) * 0xA0761D6478BD642F
        if weight is not None:
            x += (int(weight[i].view(np.uint64)) - 0x3FF0000000000000) * 0xE7037ED1A0B428DB
        low = splitmix64(x & MASK)
        low_sum, high_sum = low_sum + low, high_sum + splitmix64(low)
    low, high = kernels.hash_sums(row_id, label, weight)
    assert low + (high << 64) == (low_sum + (high_sum << 64)) % 2**128


@pytest.mark.parametrize("n_cells", [10, 5_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_equal_a_loop(kernels, n_cells, weighted, rng):
    code, label, proba = rng.integers(0, n_cells, 900), rng.integers(0, 2, 900), rng.random(900)
    weight = rng.random(900) if weighted else None
    sums, expected = np.zeros((n_cells, 8)), np.zeros((n_cells, 8))
    kernels.add_cells(code, label.astype(float), proba, weight, sums)
    for i in range(900):
        w = 1.0 if weight is None else weight[i]
        expected[code[i]] += [
            w,
            w * label[i],
            w * proba[i],
            w * proba[i] ** 2,
            w**2,
            1.0,
            w**2 * proba[i] * (1.0 - proba[i]),
            w**2 * (label[i] - proba[i]) ** 2,
        ]
    np.testing.assert_allclose(sums, expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("n_codes", [3, 70_000])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_rows_are_sorted_by_their_codes_and_stay_as_they_came(kernels, n_codes, n_columns, rng):
    code, columns = rng.integers(0, n_codes, 900), tuple(rng.random((n_columns, 900)))
    count, order = np.empty(n_codes, dtype=np.intp), np.empty(900, dtype=np.intp)
    out = tuple(np.empty((n_columns, 900)))
    kernels.sort_rows(code, columns, count, order, out)
    np.testing.assert_array_equal(order, np.argsort(code, kind="stable"))
    np.testing.assert_array_equal(count, np.bincount(code, minlength=n_codes))
    np.testing.assert_array_equal(out, [column[order] for column in columns])


@pytest.mark.parametrize("rule", [(77, 5, 0), (77, 1, 0), (77, 2**18 + 1, 0), (77, 0, 2**63)])
def test_groups_equal_a_loop_of_python_integers(kernels, rule, rng):
    row_id, out = rng.integers(0, 2**64, 700, dtype=np.uint64), np.empty(700, dtype=np.intp)
    kernels.groups_of(row_id, rule, out)
    key, folds, limit = rule
    hashes = [splitmix64(int(own) ^ key) for own in row_id]
    assert out.tolist() == [one % folds if folds else int(one >= limit) for one in hashes]


@pytest.mark.parametrize("base_rate", [0.02, 0.5, 0.97])
@pytest.mark.parametrize("weighted", [False, True])
def test_shifts_of_selections_are_those_of_their_rows(kernels, base_rate, weighted, rng):
    margin, group = rng.normal(-1.0, 2.0, 900), rng.integers(0, 4, 900)
    label = (rng.random(900) < base_rate).astype(float)
    weight = rng.random(900) if weighted else None
    chosen = np.array([[1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1]], dtype=bool)
    shifts = kernels.logit_shifts(margin, label, weight, group, chosen)
    for shift, groups in zip(shifts, chosen, strict=True):
        mine = groups[group]
        own = None if weight is None else weight[mine]
        expected = solve_logit_shift(margin[mine], label[mine], own).value
        assert shift == pytest.approx(expected, abs=1e-12)


def test_shifts_that_do_not_exist_are_none(kernels):
    margin, group = np.array([0.5, -0.5, 1.0, 2.0]), np.array([0, 0, 1, 1])
    label, chosen = np.array([0.0, 1.0, 1.0, 1.0]), np.array([[1, 1], [0, 1]], dtype=bool)
    assert kernels.logit_shifts(margin, label, None, group, chosen) is None


EVALUATE = """
import sys
{block}
import numpy as np
import trueup._kernels
from trueup import evaluate
rng = np.random.default_rng(0)
p = rng.random(1_100_000)
result = evaluate((rng.random(1_100_000) < p**1.2).astype(float), p)
print(result.vanilla, result.calibrated, result.bias_term, *result.standard_errors)
print(result.fingerprint, trueup._kernels.engine.__name__)
"""


def run_evaluation(block, **environment):
    code = EVALUATE.format(block=block)
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    numbers, identity = run.stdout.splitlines()
    fingerprint, engine = identity.rsplit(" ", 1)
    return np.array(numbers.split(), dtype=float), fingerprint, engine


def test_result_is_the_same_without_a_compiler():
    require_engine("compiled")
    compiled = run_evaluation("", TRUEUP_ENGINE="")
    for without in (
        run_evaluation("sys.modules['trueup._kernels.loops'] = None"),
        run_evaluation("", TRUEUP_ENGINE="numpy"),
    ):
        np.testing.assert_allclose(without[0], compiled[0], rtol=0.0, atol=1e-13)
        assert without[1] == compiled[1]
        assert [run[2].rpartition(".")[2] for run in (compiled, without)] == [
            "compiled_engine",
            "numpy_engine",
        ]


def good_calls():
    """Return arguments that each of the compiled loops takes, six rows each."""
    numbers, ids = np.linspace(0.1, 0.9, 6), np.arange(6, dtype=np.uint64)
    codes, table, eight = np.arange(6), np.zeros((4 * N_BINS, ORDER)), np.zeros((6, 8))
    edges, bins = np.array([-np.inf, 0.5, np.inf]), np.zeros((8, 3))
    counts, ones = np.zeros(8, dtype=np.int64), np.ones(6)
    return {
        "absorb": (ones, numbers, ones, ids, 0, False, (0, 0, 5), table, table.copy(), counts),
        "deposit": (numbers, codes % 2, ones, ones, table),
        "hash_sums": (ids, ones, ones),
        "add_cells": (codes, ones, numbers, ones, eight),
        "sum_codes": (codes, ones, numbers, eight, 8),
        "sum_bins": (ones, numbers, edges, bins),
        "groups_of": (ids, (0, 5, 0), codes.copy()),
        "logit_shifts": (numbers, 1.0 * (codes % 2), ones, codes, np.ones((2, 6), dtype=bool)),
        "sort_rows": (
            codes,
            (ones, numbers),
            codes.copy(),
            codes.copy(),
            (ones.copy(), ones.copy()),
        ),
    }


def calls_with_other_arrays(good):
    for name, arguments in good.items():
        for place, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                for wrong in others_than(argument):
                    yield name, (*arguments[:place], wrong, *arguments[place + 1 :])


def calls_with_other_values(good):
    numbers, codes, ones, table = np.full(6, 0.5), np.arange(6), np.ones(6), good["deposit"][4]
    ids, bins = good["groups_of"][0], good["sum_bins"][3]
    absorb, deposit = good["absorb"], good["deposit"]
    for rule in [(0, -1, 0), (0, 9, 0), (0, 2**18 + 1, 0), (0, 2**62, 0)]:
        yield "absorb", (*absorb[:6], rule, *absorb[7:])
    for logit in (np.nan, np.inf, -39.0, 1e300, -1e300):
        yield "deposit", (np.full(6, logit), 0 * codes, 0.0 * ones, *deposit[3:])
    for group in (-1, 2, 2**40, -(2**40)):
        yield "deposit", (numbers, np.full(6, group), *deposit[2:])
    for code in (-1, 6, 2**62):
        yield "add_cells", (np.full(6, code), *good["add_cells"][1:])
    for place in (7, 8):
        yield "absorb", (*absorb[:place], table[:-1], *absorb[place + 1 :])
    for code in (-1, 6, 2**62):
        yield "sort_rows", (np.full(6, code), *good["sort_rows"][1:])
        yield "logit_shifts", (*good["logit_shifts"][:3], np.full(6, code), good["logit_shifts"][4])
    for columns in ((ones,), (ones,) * 4, (ones, ones[:5]), (ones, codes)):
        yield "sort_rows", (codes, columns, *good["sort_rows"][2:])
        yield "sort_rows", (*good["sort_rows"][:4], columns)
    yield "groups_of", (ids, (0, -1, 0), codes.copy())
    yield "sum_codes", (*good["sum_codes"][:4], 3)
    yield "sum_bins", (ones, numbers, np.linspace(0.1, 0.9, 3), bins)


def others_than(array):
    """Return what looks like an array that was asked for and is none."""
    large = array if array.itemsize > 1 else array.astype(float)  # a byte has no odd place or order
    shifted = np.frombuffer(b"?" + large.tobytes(), offset=1, dtype=large.dtype)
    shorter = [] if array.ndim == 2 else [array[:-1], array[:, None]]
    return [
        *shorter,
        array[::-1],
        array.astype(np.float16),
        array.astype(complex),
        large.astype(large.dtype.newbyteorder()),
        array.astype(object),
        array[..., None],
        shifted.reshape(array.shape),
        "text",
        array.tolist(),
    ]


def test_the_compiled_loops_refuse_what_they_cannot_follow():
    loops = require_engine("compiled").loops
    n_refused, good = 0, good_calls()
    for name, arguments in good.items():
        getattr(loops, name)(*arguments)
    for name, arguments in [*calls_with_other_arrays(good), *calls_with_other_values(good)]:
        with pytest.raises((TypeError, ValueError, BufferError)):
            getattr(loops, name)(*arguments)
        n_refused += 1
    assert n_refused > 250
    read_only = np.zeros((6, 8))
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        loops.add_cells(np.arange(6), np.ones(6), np.ones(6), None, read_only)


def test_no_rows_add_nothing(kernels):
    none, ids, codes = np.empty(0), np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
    assert tuple(kernels.hash_sums(ids, none, None)) == (0, 0)
    sums = np.zeros((3, 8))
    kernels.add_cells(codes, none, none, None, sums)
    assert not sums.any()


def test_codes_beyond_the_table_and_rows_that_are_not_valid_are_left_out():
    loops = require_engine("compiled").loops
    code, label, proba = np.array([0, -1, 3, 1, 2, 2]), np.ones(6), np.full(6, 0.5)
    label[4], proba[5] = np.nan, 1.5
    sums = np.zeros((3, 4))
    assert loops.sum_codes(code, label, proba, sums, 4) == 4
    assert sums[:, 0].tolist() == [1.0, 1.0, 0.0]
