"""Many candidates against one baseline: the choice of the best is paid for."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.comparison import compare, compare_many
from trueup.errors import InvalidInputError


def arm(mean, seed, n=12):
    return dict(enumerate(np.random.default_rng(seed).normal(mean, 0.01, n)))


def test_each_comparison_is_at_the_corrected_level():
    arms = {"a": arm(0.4, 1), "b": arm(0.5, 2)}
    found = compare_many(arms, arm(0.5, 3), confidence_level=0.9)
    assert found.comparisons["a"] == compare(arms["a"], arm(0.5, 3), confidence_level=0.95)
    assert (found.best, found.better) == ("a", ("a",))
    assert found.sentence("old").startswith("The best of 2, with all intervals widened")


def test_the_direction_of_the_metric_decides_which_is_best():
    found = compare_many({"a": arm(0.4, 1), "b": arm(0.6, 2)}, arm(0.5, 3), greater_is_better=True)
    assert found.best == "b"


def test_no_candidate_is_refused():
    with pytest.raises(InvalidInputError, match="candidates must hold at least one pipeline"):
        compare_many({}, arm(0.5, 3))


@pytest.mark.slow
def test_no_equal_candidate_wins_more_often_than_promised_though_the_best_is_chosen():
    rng, wins, naive, n = np.random.default_rng(0), 0, 0, 400
    for _ in range(n):
        base, *arms = (dict(enumerate(rng.normal(0.0, 1.0, 8))) for _ in range(7))
        candidates = {str(k): values for k, values in enumerate(arms)}
        wins += bool(compare_many(candidates, base, confidence_level=0.8).better)
        naive += any(
            compare(values, base, confidence_level=0.8).verdict == "candidate" for values in arms
        )
    assert wins / n <= 0.2 + 2.0 * np.sqrt(0.2 * 0.8 / n)
    assert naive > wins
