from __future__ import annotations

import numpy as np
import pytest

from trueup.decide.pairing import in_order, pair_up
from trueup.errors import InvalidInputError


def test_three_shared_seeds_are_paired_and_the_rest_counted():
    arms = pair_up({2: 1.0, 0: 3.0, 1: 2.0, 7: 9.0}, {0: 1.0, 1: 1.0, 2: 0.5})
    assert arms.estimand == "paired"
    assert arms.pairs == ((0, 0), (1, 1), (2, 2))
    assert arms.differences.tolist() == [2.0, 1.0, 0.5]
    assert arms.candidate.tolist() == [3.0, 2.0, 1.0]
    assert arms.n_dropped == 1


def test_two_shared_seeds_are_not_paired():
    arms = pair_up({0: 1.0, 1: 2.0, 2: 3.0}, {1: 5.0, 2: 5.0, 3: 7.0, 4: 7.0})
    assert arms.estimand == "all pairs"
    assert arms.pairs == ((0, 1), (1, 2), (2, 3))
    assert arms.baseline.tolist() == [5.0, 5.0, 7.0, 7.0]
    assert arms.n_dropped == 1


def test_pairing_never_looks_at_the_values():
    seeds = range(5)
    close, far = dict.fromkeys(seeds, 1.0), {seed: float(seed) for seed in seeds}
    assert pair_up(close, far).pairs == pair_up(far, close).pairs


def test_pairing_may_be_switched_off():
    seeds = dict.fromkeys(range(4), 1.0)
    assert pair_up(seeds, seeds, paired=False).estimand == "all pairs"


def test_failed_seed_is_left_out_of_both_arms_and_recorded():
    first = {0: 1.0, 1: np.nan, 2: 1.0, 3: 1.0, 4: None}
    arms = pair_up(first, dict.fromkeys(range(5), 2.0), allow_failed=True)
    assert arms.pairs == ((0, 0), (2, 2), (3, 3))
    assert arms.failed_candidate == (1, 4)
    assert arms.failed_baseline == ()
    assert arms.n_dropped == 2


def test_numbers_come_before_text():
    assert in_order(["b", 10, 2, "a", np.int64(3)]) == [2, 3, 10, "a", "b"]


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        ([1.0, 2.0], "candidate must be a mapping seed -> value; got list"),
        ({0: np.nan}, "candidate must hold a finite value for each seed; got nan at seed 0"),
        ({0: None}, "candidate must hold a finite value for each seed; got nan at seed 0"),
        ({0: "good"}, "candidate must hold numbers; got 'good' at seed 0"),
        ({}, "candidate must hold at least one finished run; got 0 failed"),
    ],
)
def test_bad_arm_is_refused(candidate, message):
    with pytest.raises(InvalidInputError, match=message):
        pair_up(candidate, {0: 1.0})


def test_pairing_without_shared_seeds_is_refused():
    with pytest.raises(InvalidInputError, match="must share seeds with paired=True; got none"):
        pair_up({0: 1.0}, {1: 1.0}, paired=True)


def test_unknown_pairing_is_refused():
    with pytest.raises(InvalidInputError, match='paired must be True, False or "auto"; got'):
        pair_up({0: 1.0}, {0: 1.0}, paired="always")
