"""Both engines against plain loops, and the package without numba."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from trueup import _kernels
from trueup._kernels import engine, numba_engine, numpy_engine
from trueup._kernels.grid import LIMIT, N_BINS, ORDER, WIDTH

ENGINES = [numpy_engine, numba_engine]
MASK = (1 << 64) - 1


def splitmix64(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("kernels", ENGINES)
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


@pytest.mark.parametrize("kernels", ENGINES)
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


@pytest.mark.parametrize("kernels", ENGINES)
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


def test_numba_is_taken_for_many_rows_only(monkeypatch):
    monkeypatch.delenv("TRUEUP_ENGINE", raising=False)
    assert engine(1_000) is numpy_engine
    assert engine(1_000_000) is numba_engine
    monkeypatch.setenv("TRUEUP_ENGINE", "numpy")
    assert engine(1_000_000) is numpy_engine


def test_loops_are_compiled_once_many_rows_have_gone_without(monkeypatch, tmp_path):
    monkeypatch.delenv("TRUEUP_ENGINE", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delitem(sys.modules, "trueup._kernels.numba_loops")
    monkeypatch.setattr("trueup._kernels._gone_without", _kernels._Count())
    assert engine(149_000_000) is numpy_engine
    assert engine(400_000_000, 900_000) is numpy_engine
    assert engine(1_000_000) is numba_engine
    monkeypatch.setattr("trueup._kernels._gone_without", _kernels._Count())
    monkeypatch.setenv("TRUEUP_ENGINE", "numba")
    assert engine(1_000_000) is numba_engine


EVALUATE = """
import sys
{block}
import numpy as np
from trueup import evaluate
rng = np.random.default_rng(0)
p = rng.random(1_100_000)
result = evaluate((rng.random(1_100_000) < p**1.2).astype(float), p)
print(result.vanilla, result.calibrated, result.bias_term, *result.standard_errors)
print(result.fingerprint, "numba" in sys.modules and sys.modules["numba"] is not None)
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
    fingerprint, numba_loaded = identity.rsplit(" ", 1)
    return np.array(numbers.split(), dtype=float), fingerprint, numba_loaded


def test_result_is_the_same_without_numba():
    with_numba = run_evaluation("")
    for without in (
        run_evaluation("sys.modules['numba'] = None"),
        run_evaluation("", TRUEUP_ENGINE="numpy"),
    ):
        np.testing.assert_allclose(without[0], with_numba[0], rtol=0.0, atol=1e-13)
        assert without[1] == with_numba[1]
        assert (with_numba[2], without[2]) == ("True", "False")
