from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct

from trueup.comparison import SeedsNeeded, required_seeds
from trueup.decide.seeds_needed import noncentrality, seeds_to_verdict
from trueup.errors import InvalidInputError


def pilot(mean, sd, n=10):
    """Two arms whose paired differences have exactly this mean and standard deviation."""
    noise = np.random.default_rng(1).normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return dict(enumerate(5.0 + mean + sd * noise)), dict.fromkeys(range(n), 5.0)


def test_number_depends_on_the_standardised_distance_only():
    expected = seeds_to_verdict(0.5)
    assert required_seeds(*pilot(-0.5, 1.0)).n == expected
    assert required_seeds(*pilot(0.005, 0.01)).n == expected
    assert required_seeds(*pilot(0.7, 1.0), min_effect=0.2).n == expected


def test_position_in_an_array_is_its_seed():
    candidate, baseline = pilot(-0.5, 1.0)
    arrays = np.array(list(candidate.values())), list(baseline.values())
    assert required_seeds(*arrays) == required_seeds(candidate, baseline)


def test_interval_holds_the_estimate_and_may_be_open():
    needed = required_seeds(*pilot(-0.5, 1.0))
    assert needed.low < needed.n < needed.high
    assert math.isinf(required_seeds(*pilot(-0.05, 1.0)).high)


def test_more_power_and_a_smaller_difference_take_more_seeds():
    assert seeds_to_verdict(0.5, 0.95) > seeds_to_verdict(0.5, 0.8) > seeds_to_verdict(0.7, 0.8)


def test_small_effects_follow_the_inverse_square_law_slowly():
    # The boundary grows with log n, so a tenth of the effect takes somewhat more than 100 times.
    assert 100 < seeds_to_verdict(0.01) / seeds_to_verdict(0.1) < 160


def test_difference_within_min_effect_never_gives_a_verdict():
    needed = required_seeds(*pilot(-0.1, 0.01), min_effect=0.2)
    assert math.isinf(needed.n)
    assert str(needed) == "no number of seeds"


def test_constant_difference_needs_the_least_that_the_rule_allows():
    arms = dict.fromkeys(range(3), 1.0), dict.fromkeys(range(3), 2.0)
    assert required_seeds(*arms).n == 5
    assert math.isinf(required_seeds(arms[0], arms[0]).n)


def test_noncentrality_inverts_scipys_distribution():
    for statistic, df, level in ((2.5, 9, 0.9), (2.5, 9, 0.1), (40.0, 60, 0.9), (-0.5, 4, 0.1)):
        found = noncentrality(statistic, df, level)
        assert nct.cdf(statistic, df, found) == pytest.approx(level, abs=1e-7)
    assert noncentrality(-3.0, 9, 0.9) == 0.0


def test_result_reads_as_seeds_that_are_still_missing():
    assert str(SeedsNeeded(16, 12, 50, 10, 0.8)) == "6 more seeds (2-40)"
    assert str(SeedsNeeded(16, 12, math.inf, 10, 0.8)) == "6 more seeds (2 or more)"
    assert str(SeedsNeeded(16, 12, 564_575, 10, 0.8)) == "6 more seeds (2 or more)"
    assert str(SeedsNeeded(9, 5, 11, 10, 0.8)) == "1 more seed (1-1)"
    inside = SeedsNeeded(math.inf, 14, math.inf, 10, 0.8)
    assert str(inside) == "at least 4 more seeds, perhaps no number"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"power": 1.0}, r"power must be in \(0, 1\); got 1.0"),
        ({"min_effect": -1.0}, "min_effect must be finite and at least 0; got -1.0"),
        ({"confidence_level": 95}, r"confidence_level must be in \(0, 1\); got 95"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        required_seeds(*pilot(-0.5, 1.0), **arguments)


def test_one_pair_is_refused():
    with pytest.raises(InvalidInputError, match="must give at least 2 pairs; got 1"):
        required_seeds({0: 1.0}, {0: 2.0})
