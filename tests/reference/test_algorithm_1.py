"""Algorithm 1 against a twin in pure Python with 30 digits, which shares no code with it."""

from __future__ import annotations

import math
from functools import cache
from hashlib import blake2b
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate

mpmath.mp.dps = 30
N = 140
MASK = (1 << 64) - 1


def mix(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def row_hash(identity, salt):
    if isinstance(identity, str):
        identity = int.from_bytes(blake2b(identity.encode(), digest_size=8).digest(), "little")
    return mix(identity ^ mix(salt))


def pairs_of(split, ids, times):
    """Return, for each scored part, the positions that fit the bias and those that are scored."""
    everything = list(range(len(ids)))
    if isinstance(split, InSample):
        return [(everything, everything)]
    if isinstance(split, CrossFit):
        fold = [row_hash(identity, split.salt) % split.folds for identity in ids]
        return [
            ([i for i in everything if fold[i] != k], [i for i in everything if fold[i] == k])
            for k in range(split.folds)
        ]
    if isinstance(split, HoldOut):
        in_bias = [row_hash(i, split.salt) < split.bias_fraction * 2.0**64 for i in ids]
        return [([i for i in everything if in_bias[i]], [i for i in everything if not in_bias[i]])]
    period = [math.floor((time - min(times)) / split.period) for time in times]
    order = sorted(set(period))
    return [
        ([i for i in everything if period[i] == a], [i for i in everything if period[i] == b])
        for a, b in pairwise(order)
    ]


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def log_odds(p):
    return mpmath.log(p) - mpmath.log(1 - mpmath.mpf(p))


@cache
def bracketed_shift(rows):
    margins = [(log_odds(p), y, w) for y, p, w in rows]

    def miss(c):
        return sum(w * (sigmoid(margin - c) - y) for margin, y, w in margins)

    return mpmath.findroot(miss, (-20, 20), solver="anderson", tol=1e-40)


class LogitTwin:
    """Log loss or Brier score, which share their shift."""

    def __init__(self, value):
        self.value = value

    def fit(self, rows):
        return bracketed_shift(tuple(rows))

    def loss(self, y, p, c):
        return self.value(y, sigmoid(log_odds(p) - c))


class SquaredErrorTwin:
    def fit(self, rows):
        return sum(w * (mpmath.mpf(y) - p) for y, p, w in rows) / sum(w for *_, w in rows)

    def loss(self, y, p, c):
        return (y - (mpmath.mpf(p) + c)) ** 2


class PoissonTwin:
    def fit(self, rows):
        return mpmath.log(sum(w * y for y, _, w in rows) / sum(w * p for _, p, w in rows))

    def loss(self, y, p, c):
        rate = p * mpmath.exp(c)
        return 2 * ((y * mpmath.log(y / rate) if y else 0) - y + rate)


TWINS = {
    "log_loss": LogitTwin(lambda y, p: -mpmath.log(p if y else 1 - p)),
    "brier_score": LogitTwin(lambda y, p: (y - p) ** 2),
    "mean_squared_error": SquaredErrorTwin(),
    "poisson_deviance": PoissonTwin(),
}


def slow_evaluate(twin, rows, pairs):
    """Return vanilla, calibrated, vanilla on scored rows, bias terms and the two errors."""
    biases, scored, plain = [], [], []
    for fit_on, score_on in pairs:
        c = twin.fit([rows[i] for i in fit_on])
        biases.append(c)
        scored += [(rows[i][2], twin.loss(*rows[i][:2], c)) for i in score_on]
        plain += [(rows[i][2], twin.loss(*rows[i][:2], mpmath.mpf(0))) for i in score_on]
    vanilla = [(w, twin.loss(y, p, mpmath.mpf(0))) for y, p, w in rows]
    return {
        "vanilla": mean(vanilla),
        "calibrated": mean(scored),
        "vanilla_on_scored_rows": mean(plain),
        "bias_term": twin.fit(rows),
        "fold_bias_terms": biases,
        "standard_errors": [standard_error(vanilla), standard_error(scored)],
        "n_scored": len(scored),
    }


def mean(pairs):
    return sum(w * v for w, v in pairs) / sum(w for w, _ in pairs)


def standard_error(pairs):
    n, centre, total = len(pairs), mean(pairs), sum(w for w, _ in pairs)
    return mpmath.sqrt(sum((w * (v - centre)) ** 2 for w, v in pairs) * n / (n - 1)) / total


def make_rows(loss, weighted):
    rng = np.random.default_rng(11)
    logit = rng.normal(-0.7, 1.5, N)
    proba = 1.0 / (1.0 + np.exp(-logit))
    y_true, y_pred = {
        "mean_squared_error": (rng.normal(0.4, 1.0, N), logit),
        "poisson_deviance": (rng.poisson(2.0, N).astype(float), rng.gamma(3.0, size=N)),
    }.get(loss, ((rng.random(N) < proba**1.4).astype(float), proba))
    weight = rng.uniform(0.3, 3.0, N) if weighted else np.ones(N)
    return y_true, y_pred, weight


@pytest.mark.parametrize("loss", TWINS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "split", [CrossFit(5), CrossFit(3, salt=9), HoldOut(0.35), InSample(), Rolling(2.5)], ids=repr
)
@pytest.mark.parametrize("named_rows", [False, True], ids=["positions", "strings"])
def test_evaluate_equals_the_twin(loss, weighted, split, named_rows):
    y_true, y_pred, weight = make_rows(loss, weighted)
    ids = [f"row {i}" for i in range(N)] if named_rows else list(range(N))
    times = list(np.arange(N) % 11)
    found = evaluate(
        y_true,
        y_pred,
        loss=loss,
        split=split,
        row_id=ids,
        times=times,
        sample_weight=weight if weighted else None,
    )
    rows = list(zip(y_true.tolist(), y_pred.tolist(), weight.tolist(), strict=True))
    expected = slow_evaluate(TWINS[loss], rows, pairs_of(split, ids, times))
    for name, value in expected.items():
        np.testing.assert_allclose(
            getattr(found, name),
            np.array(value, dtype=float),
            rtol=1e-12,
            atol=1e-12,
            err_msg=name,
        )
