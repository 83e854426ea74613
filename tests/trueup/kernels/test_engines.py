"""Both engines against plain loops, what the compiled one refuses, and the package without it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.engines import require_engine

from trueup._kernels import engine, numpy_engine
from trueup._kernels.grid import LIMIT, N_BINS, ORDER, WIDTH

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
    assert low == low_sum
    assert high % 2**64 == high_sum % 2**64


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


def test_the_compiled_engine_is_taken_unless_numpy_is_wanted(monkeypatch):
    compiled = require_engine("compiled")
    monkeypatch.delenv("TRUEUP_ENGINE", raising=False)
    assert engine() is compiled
    monkeypatch.setenv("TRUEUP_ENGINE", "numpy")
    assert engine() is numpy_engine


EVALUATE = """
import sys
{block}
import numpy as np
from trueup import evaluate
rng = np.random.default_rng(0)
p = rng.random(1_100_000)
result = evaluate((rng.random(1_100_000) < p**1.2).astype(float), p)
print(result.vanilla, result.calibrated, result.bias_term, *result.standard_errors)
print(result.fingerprint, "trueup._kernels.compiled_engine" in sys.modules)
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
    fingerprint, is_compiled = identity.rsplit(" ", 1)
    return np.array(numbers.split(), dtype=float), fingerprint, is_compiled


def test_result_is_the_same_without_a_compiler():
    require_engine("compiled")
    compiled = run_evaluation("")
    for without in (
        run_evaluation("sys.modules['trueup._kernels.loops'] = None"),
        run_evaluation("", TRUEUP_ENGINE="numpy"),
    ):
        np.testing.assert_allclose(without[0], compiled[0], rtol=0.0, atol=1e-13)
        assert without[1] == compiled[1]
        assert (compiled[2], without[2]) == ("True", "False")


def refused_calls(loops):
    """Yield calls of the compiled loops with one argument each that they must not follow."""
    numbers, ids = np.linspace(0.1, 0.9, 6), np.arange(6, dtype=np.uint64)
    codes, table, eight = np.arange(6), np.zeros((4 * N_BINS, ORDER)), np.zeros((6, 8))
    edges, bins = np.array([-np.inf, 0.5, np.inf]), np.zeros((8, 3))
    counts, ones = np.zeros(8, dtype=np.int64), np.ones(6)
    good = {
        "absorb": (ones, numbers, ones, ids, 0, False, (0, 0, 5), table, table.copy(), counts),
        "deposit": (numbers, codes % 2, ones, ones, table),
        "hash_sums": (ids, ones, ones),
        "add_cells": (codes, ones, numbers, ones, eight),
        "sum_codes": (codes, ones, numbers, eight, 8),
        "sum_bins": (ones, numbers, edges, bins),
    }
    for name, arguments in good.items():
        getattr(loops, name)(*arguments)
        for place, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                for wrong in others_than(argument):
                    yield name, (*arguments[:place], wrong, *arguments[place + 1 :])
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
    yield "sum_codes", (*good["sum_codes"][:4], 3)
    yield "sum_bins", (ones, numbers, np.linspace(0.1, 0.9, 3), bins)


def others_than(array):
    """Return what looks like an array that was asked for and is none."""
    shifted = np.frombuffer(b"?" + array.tobytes(), offset=1, dtype=array.dtype)
    shorter = [] if array.ndim == 2 else [array[:-1], array[:, None]]
    return [
        *shorter,
        array[::-1],
        array.astype(np.float16),
        array.astype(complex),
        array.astype(array.dtype.newbyteorder()),
        array.astype(object),
        array[..., None],
        shifted.reshape(array.shape),
        "text",
        array.tolist(),
    ]


def test_the_compiled_loops_refuse_what_they_cannot_follow():
    loops = require_engine("compiled").loops
    n_refused = 0
    for name, arguments in refused_calls(loops):
        with pytest.raises((TypeError, ValueError, BufferError)):
            getattr(loops, name)(*arguments)
        n_refused += 1
    assert n_refused > 250
    read_only = np.zeros((6, 8))
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        loops.add_cells(np.arange(6), np.ones(6), np.ones(6), None, read_only)


def test_codes_beyond_the_table_and_rows_that_are_not_valid_are_left_out():
    loops = require_engine("compiled").loops
    code, label, proba = np.array([0, -1, 3, 1, 2, 2]), np.ones(6), np.full(6, 0.5)
    label[4], proba[5] = np.nan, 1.5
    sums = np.zeros((3, 4))
    assert loops.sum_codes(code, label, proba, sums, 4) == 4
    assert sums[:, 0].tolist() == [1.0, 1.0, 0.0]
