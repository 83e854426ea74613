"""Row hashes and fingerprints."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup import HoldOut, InSample, Rolling, evaluate, require_same_rows
from trueup._kernels.hashing import rows_fingerprint, salted_hash, splitmix64, timed_ids
from trueup.errors import InvalidInputError, StateMismatchError
from trueup.read.ids import read_ids

MASK = (1 << 64) - 1


def slow_splitmix64(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_splitmix64_gives_the_published_first_outputs():
    # The generator with seed 1234567 outputs the mix of seed, seed + gamma, seed + 2 gamma, ...
    gamma = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + i * gamma) & MASK for i in range(3)], dtype=np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert splitmix64(states).tolist() == expected


@given(st.integers(0, MASK), st.integers(-(2**63), 2**63))
def test_salted_hash_equals_pure_python(row, salt):
    ours = int(salted_hash(np.array([row], dtype=np.uint64), salt)[0])
    assert ours == slow_splitmix64(row ^ slow_splitmix64(salt & MASK))


def test_row_ids_default_to_the_position():
    assert read_ids(None, 3).tolist() == [0, 1, 2]


def test_integer_ids_are_taken_as_they_are_in_any_integer_type():
    for dtype in (np.int8, np.int64, np.uint32, np.uint64):
        assert read_ids(np.array([0, 5, 7], dtype=dtype), 3).tolist() == [0, 5, 7]
    assert read_ids(np.array([-1]), 1).tolist() == [MASK]


def test_string_ids_are_hashed_alike_in_every_container():
    expected = [int.from_bytes(blake2b(s.encode(), digest_size=8).digest(), "little") for s in "äb"]
    for column in (["ä", "b"], np.array(["ä", "b"]), pd.Series(["ä", "b"]), pl.Series(["ä", "b"])):
        assert read_ids(column, 2).tolist() == expected


@pytest.mark.parametrize("ids", [[0.5, 1.0], [1, "a"], [b"a", b"b"], [True, False]])
def test_other_ids_are_refused(ids):
    with pytest.raises(InvalidInputError, match="row_id must be integers or strings; got dtype"):
        read_ids(np.array(ids, dtype=None if 1 not in ids[:1] else object), 2)


def random_rows(n=500, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 2**63, n).astype(np.uint64)
    return ids, rng.integers(0, 2, n).astype(float), rng.uniform(0.5, 2.0, n)


def slow_fingerprint(ids, labels, weights):
    total = 0
    for row, label, weight in zip(ids, labels, weights, strict=True):
        label_bits, weight_bits = (int(np.float64(v).view(np.uint64)) for v in (label, weight))
        word = int(row) * 0xD6E8FEB86659FD93 + label_bits * 0xA0761D6478BD642F
        low = slow_splitmix64(
            (word + (weight_bits - 0x3FF0000000000000) * 0xE7037ED1A0B428DB) & MASK
        )
        total += (slow_splitmix64(low) << 64) + low
    return total % (1 << 128)


def test_fingerprint_equals_a_sum_in_python_integers():
    rows = random_rows(50)
    assert rows_fingerprint(*rows) == slow_fingerprint(*rows)


def test_fingerprint_does_not_depend_on_the_order():
    rows = random_rows()
    order = np.random.default_rng(1).permutation(500)
    assert rows_fingerprint(*rows) == rows_fingerprint(*(values[order] for values in rows))


@given(st.lists(st.integers(0, 500), max_size=8))
def test_fingerprints_of_parts_add_up_to_the_whole(cuts):
    rows = random_rows()
    parts = zip(*(np.split(values, sorted(cuts)) for values in rows), strict=True)
    total = sum(rows_fingerprint(*part) for part in parts) % (1 << 128)
    assert total == rows_fingerprint(*rows)


@pytest.mark.parametrize("changed", ["id", "label", "weight", "swapped labels", "dropped row"])
def test_fingerprint_changes_with_any_row(changed):
    ids, labels, weights = random_rows()
    before = rows_fingerprint(ids, labels, weights)
    if changed == "id":
        ids = np.r_[ids[:-1], ids[-1] + np.uint64(1)]
    elif changed == "label":
        labels = np.r_[1.0 - labels[:1], labels[1:]]
    elif changed == "weight":
        weights = np.r_[np.nextafter(weights[:1], 9.0), weights[1:]]
    elif changed == "swapped labels":
        labels = labels.copy()
        one, zero = labels.argmax(), labels.argmin()
        labels[[one, zero]] = labels[[zero, one]]
    else:
        ids, labels, weights = ids[1:], labels[1:], weights[1:]
    assert rows_fingerprint(ids, labels, weights) != before


def test_negative_zero_is_zero():
    ids = np.arange(2, dtype=np.uint64)
    zeros = rows_fingerprint(ids, np.zeros(2), None)
    assert rows_fingerprint(ids, -np.zeros(2), None) == zeros


def test_weights_of_one_are_no_weights():
    ids, labels, _ = random_rows()
    assert rows_fingerprint(ids, labels, np.ones(500)) == rows_fingerprint(ids, labels, None)


def test_another_time_is_another_row_where_the_split_goes_by_time():
    times = np.arange(120) // 40
    first = evaluate(LABELS, PROBA, times=times, split=Rolling(1))
    other = evaluate(LABELS, PROBA, times=np.roll(times, 1), split=Rolling(1))
    with pytest.raises(StateMismatchError):
        require_same_rows([first, other])
    as_floats = evaluate(LABELS, PROBA, times=times.astype(float), split=Rolling(1))
    assert as_floats.fingerprint == first.fingerprint
    without = evaluate(LABELS, PROBA, split=InSample()).fingerprint
    assert evaluate(LABELS, PROBA, times=times, split=InSample()).fingerprint == without


def test_unit_of_datetimes_does_not_matter():
    ids, days = np.arange(5, dtype=np.uint64), np.arange(5).astype("M8[D]")
    np.testing.assert_array_equal(timed_ids(ids, days), timed_ids(ids, days.astype("M8[ns]")))


LABELS, PROBA = [0, 1] * 60, [0.2, 0.7] * 60


def test_unequal_rows_are_refused_and_both_named():
    first = evaluate(LABELS, PROBA)
    second = evaluate(LABELS, PROBA, row_id=np.arange(1, 121))
    with pytest.raises(StateMismatchError) as error:
        require_same_rows([first, second])
    assert first.fingerprint in str(error.value)
    assert second.fingerprint in str(error.value)
    both = require_same_rows([first, second], allow_mismatch=True)
    assert both == {first.fingerprint, second.fingerprint}


def test_another_split_of_the_same_rows_is_refused():
    pair = [evaluate(LABELS, PROBA), evaluate(LABELS, PROBA, split=HoldOut(0.5))]
    with pytest.raises(StateMismatchError, match="HoldOut"):
        require_same_rows(pair)


def test_two_models_on_the_same_rows_are_comparable():
    other = [0.3, 0.6] * 60
    assert len(require_same_rows([evaluate(LABELS, PROBA), evaluate(LABELS, other)])) == 1
