"""The rows that every container and every file of the two tables holds, and what they score."""

from __future__ import annotations

import numpy as np
import pytest

import trueup

N = 60
RNG = np.random.default_rng(3)
P = RNG.integers(1, 64, N) / 64  # exact in float16 and in few decimals
Y = (RNG.random(N) < P).astype(np.int64)
W = RNG.integers(1, 9, N) / 4
INTS = RNG.permutation(10 * N)[:N].astype(np.int64) - 30
LONG = [10_000_000_000_000_000_000 + 7 * int(i) for i in range(N)]  # beyond int64, within uint64
HUGE = [str(10**24 + i) for i in range(N)]
PADDED = [f"{i:05d}" for i in range(N)]
MIXED = [str(i) if i % 2 else f"0{i}" for i in range(N)]  # "7" and "07"
DATES = [str(np.datetime64("2024-01-01") + i) for i in range(N)]
NAMED = np.array(["no", "yes"])[Y]
IDS = {
    "position": None,
    "integers": INTS,
    "long": np.array(LONG, dtype=np.uint64),
    "huge": np.array(HUGE, dtype=object),
    "padded": np.array(PADDED, dtype=object),
    "mixed": np.array(MIXED, dtype=object),
    "dates": np.array(DATES, dtype=object),
}
REFERENCE = {
    (kind, weighted): trueup.evaluate(Y, P, row_id=ids, sample_weight=W if weighted else None)
    for kind, ids in IDS.items()
    for weighted in (False, True)
}


def assert_same(got, expected):
    assert got.fingerprint == expected.fingerprint
    assert got.n == expected.n
    for name in ("vanilla", "calibrated", "bias_term", "bias_cost"):
        assert getattr(got, name) == pytest.approx(getattr(expected, name), abs=1e-12)


def holed(values, rows=(17, 30, 42)):
    listed = list(values)
    for row in rows:
        listed[row] = None
    return listed
