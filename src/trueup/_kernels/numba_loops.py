"""Loops compiled by numba. Each is simple enough to be vectorised, save the sums into tables."""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit

from trueup._kernels.grid import BINS_PER_UNIT, LIMIT, N_BINS
from trueup._kernels.hashing import (
    BITS_OF_ONE,
    FIRST_FACTOR,
    GOLDEN,
    ID_FACTOR,
    LABEL_FACTOR,
    S27,
    S30,
    S31,
    S32,
    SECOND_FACTOR,
    WEIGHT_FACTOR,
)
from trueup._kernels.numba_vectors import add_eight, add_four, add_powers

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})

STRIP = 640
"""Rows that go through all loops before the next: what lies between the loops stays in cache.

Not a power of two, for which the arrays between the loops would compete for the same cache lines.
"""

_HALF = N_BINS // 2
_LOW_HALF, _MINUS_ZERO = np.uint64(0xFFFFFFFF), np.uint64(1 << 63)
_EPS = float(np.finfo(np.float64).eps)
_FRACTION_BITS, _HALF_EXPONENT = np.int64(52), np.int64(1 << 51)
_LOG_2 = log(2.0)
_ATANH = (
    2.0,
    0.6666666666667552,
    0.39999999995366287,
    0.28571429493291656,
    0.22222132327182004,
    0.18186564022689808,
    0.15246625336719352,
    0.15392596696221966,
)  # of f^2 to the powers 0 to 7: 2 atanh(f) / f for |f| <= 0.2, to 3e-17 of it


@compiled
def mix(x):  # type: ignore[no-untyped-def]
    z = x + GOLDEN
    z = (z ^ (z >> S30)) * FIRST_FACTOR
    z = (z ^ (z >> S27)) * SECOND_FACTOR
    return z ^ (z >> S31)


@compiled
def hash_sums(row_id, label, weight):  # type: ignore[no-untyped-def]
    upper, lower, high = np.uint64(0), np.uint64(0), np.uint64(0)
    weighted = len(weight) > 0
    for i in range(len(row_id)):
        x = row_id[i] * ID_FACTOR + _bits(label[i]) * LABEL_FACTOR
        if weighted:
            x += (_bits(weight[i]) - BITS_OF_ONE) * WEIGHT_FACTOR
        low = mix(x)
        upper += low >> S32
        lower += low & _LOW_HALF
        high += mix(low)
    return upper, lower, high


@compiled
def _bits(value):  # type: ignore[no-untyped-def]
    bits = np.float64(value).view(np.uint64)
    return np.uint64(0) if bits == _MINUS_ZERO else bits  # equal numbers, equal bits


@compiled
def are_plain(label, prediction, low, high, weight):  # type: ignore[no-untyped-def]
    """Tell whether all rows are valid and inside [low, high]; NaN is neither."""
    n_bad = 0
    for i in range(len(label)):
        inside = (prediction[i] >= low) & (prediction[i] <= high)
        n_bad += not (inside & ((label[i] == 0.0) | (label[i] == 1.0)))
    for i in range(len(weight)):
        n_bad += not ((weight[i] >= 0.0) & (weight[i] < np.inf))
    return n_bad == 0


@compiled
def logits(probability, out):  # type: ignore[no-untyped-def]
    """Write log(p / (1 - p)) as ``e log 2 + 2 atanh f``, for p in [EPS, 1 - EPS].

    ``e`` is the power of two that brings ``q = 2^e (1 - p)`` nearest to p, by the bits of the two
    numbers, and ``f = (p - q) / (p + q)``.
    """
    for i in range(len(probability)):
        p = np.float64(probability[i])
        q = np.float64(1.0 - p)
        bits = q.view(np.int64)
        e = (p.view(np.int64) - bits + _HALF_EXPONENT) >> _FRACTION_BITS
        q = np.int64(bits + (e << _FRACTION_BITS)).view(np.float64)
        f = (p - q) / (p + q)
        square = f * f
        series = _ATANH[-1]
        for k in range(len(_ATANH) - 2, -1, -1):
            series = series * square + _ATANH[k]
        out[i] = np.float64(e) * _LOG_2 + series * f


@compiled
def cells(row_id, label, key, folds, limit, out):  # type: ignore[no-untyped-def]
    """Write ``2 group + label``; the remainder of the hash is taken in exact float64."""
    if folds == 1:
        for i in range(len(row_id)):
            out[i] = np.int64(label[i])
        return
    if folds == 0:
        for i in range(len(row_id)):
            out[i] = 2 * np.int64(mix(row_id[i] ^ key) >= limit) + np.int64(label[i])
        return
    size, carry = np.float64(folds), np.float64((1 << 32) % folds)
    inverse = 1.0 / size
    for i in range(len(row_id)):
        hashed = mix(row_id[i] ^ key)
        upper, lower = np.int64(hashed >> S32), np.int64(hashed & _LOW_HALF)
        x = np.float64(upper) * carry + np.float64(lower)
        rest = x - np.floor((x + 0.5) * inverse) * size  # the half is more than rounding can take
        out[i] = np.int64(2.0 * rest + label[i])


@compiled
def places(logit, cell):  # type: ignore[no-untyped-def]
    """Put the row of the table where the cell was, and the place in the bin where the logit was."""
    for i in range(len(logit)):
        scaled = logit[i] * BINS_PER_UNIT
        left = np.floor(scaled)
        logit[i] = 2.0 * (scaled - left) - 1.0
        cell[i] = N_BINS * cell[i] + np.int64(left) + _HALF


@compiled
def deposit(bins, u, weight, table):  # type: ignore[no-untyped-def]
    """Add ``weight u^k`` to the bins; no weights are weights of one."""
    weighted = len(weight) > 0
    for i in range(len(bins)):
        add_powers(table, bins[i], u[i], weight[i] if weighted else 1.0)


@compiled
def count(cell, weight, counts):  # type: ignore[no-untyped-def]
    """Count rows, and rows of positive weight, by cell."""
    for i in range(len(cell)):
        counts[0, cell[i]] += 1
        counts[1, cell[i]] += weight[i] > 0.0


@compiled
def count_by_bins(table, sign, counts):  # type: ignore[no-untyped-def]
    """Add or subtract the rows of each cell, which the bins count where there are no weights."""
    for cell in range(counts.shape[1]):
        rows = 0.0
        for i in range(N_BINS):
            rows += table[N_BINS * cell + i, 0]
        for k in range(2):
            counts[k, cell] += sign * np.int64(rows)


@compiled
def add_cells(code, label, proba, weight, sums):  # type: ignore[no-untyped-def]
    weighted = len(weight) > 0
    for i in range(len(code)):
        w = weight[i] if weighted else 1.0
        y, p = label[i], proba[i]
        s = w * w
        add_eight(
            sums, code[i], w, w * y, w * p, w * p * p, s, 1.0, s * p * (1.0 - p), s * (y - p) ** 2
        )


@compiled
def code_sums(code, label, proba, sums):  # type: ignore[no-untyped-def]
    """Add 1, label, proba and its square at each code; return how many rows were left out."""
    n_bad, n_codes = 0, np.uint64(len(sums))
    for i in range(len(code)):
        c, y, p = np.uint64(code[i]), np.float64(label[i]), np.float64(proba[i])  # -1 is large
        if (c < n_codes) & ((y == 0.0) | (y == 1.0)) & (p >= 0.0) & (p <= 1.0):
            add_four(sums, np.int64(c), 1.0, y, p, p * p)
        else:
            n_bad += 1
    return n_bad


@compiled
def code_table(code, label, proba, sums):  # type: ignore[no-untyped-def]
    """Add the numbers of ``add_cells`` at each code; return how many rows were left out."""
    n_bad, n_codes = 0, np.uint64(len(sums))
    for i in range(len(code)):
        c, y, p = np.uint64(code[i]), np.float64(label[i]), np.float64(proba[i])  # -1 is large
        if (c < n_codes) & ((y == 0.0) | (y == 1.0)) & (p >= 0.0) & (p <= 1.0):
            add_eight(
                sums, np.int64(c), 1.0, y, p, p * p, 1.0, 1.0, p * (1.0 - p), (y - p) * (y - p)
            )
        else:
            n_bad += 1
    return n_bad


@compiled
def bin_sums(label, proba, edges, sums):  # type: ignore[no-untyped-def]
    """Add 1, label and proba to the bin of each row, of which ``sums`` has four copies.

    The number of the bin is guessed by arithmetic and corrected by its edges.
    """
    n_bad, n_bins = 0, len(edges) - 1
    for i in range(len(label)):
        y, p = np.float64(label[i]), np.float64(proba[i])
        if ((y == 0.0) | (y == 1.0)) & (p >= 0.0) & (p <= 1.0):
            guess = np.int64(p * n_bins)
            guess -= guess == n_bins
            row = sums[i & 3, guess - (edges[guess] >= p) + (edges[guess + 1] < p)]
            row[0] += 1.0
            row[1] += y
            row[2] += p
        else:
            n_bad += 1
    return n_bad


@compiled
def absorb(  # type: ignore[no-untyped-def]
    rows, is_logit, ids, rule, tables, counts
):
    """Send the rows through all loops, strip by strip, up to the first strip that is not plain."""
    label, prediction, weight = rows
    row_id, first_row = ids
    key, folds, limit = rule
    low, high = (-LIMIT, np.nextafter(LIMIT, 0.0)) if is_logit else (_EPS, 1.0 - _EPS)
    logit, cell = np.empty(STRIP), np.empty(STRIP, np.int64)
    own_id = np.empty(STRIP, np.uint64)
    upper, lower, top = np.uint64(0), np.uint64(0), np.uint64(0)
    start = 0
    if not len(weight):
        count_by_bins(tables[0], -1, counts)
    while start < len(label):
        stop = min(start + STRIP, len(label))
        y, x, w, m = label[start:stop], prediction[start:stop], weight[start:stop], stop - start
        if not are_plain(y, x, low, high, w):
            break
        if len(row_id):
            own_id[:m] = row_id[start:stop]
        else:
            for i in range(m):
                own_id[i] = first_row + np.uint64(start + i)
        if is_logit:
            logit[:m] = x
        else:
            logits(x, logit[:m])
        cells(own_id[:m], y, key, folds, limit, cell[:m])
        if len(w):
            count(cell[:m], w, counts)
        places(logit[:m], cell[:m])
        deposit(cell[:m], logit[:m], w, tables[0])
        if len(w):
            deposit(cell[:m], logit[:m], w * w, tables[1])
        sums = hash_sums(own_id[:m], y, w)
        upper, lower, top = upper + sums[0], lower + sums[1], top + sums[2]
        start = stop
    if not len(weight):
        count_by_bins(tables[0], 1, counts)
    return start, upper, lower, top
