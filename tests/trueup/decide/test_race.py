from __future__ import annotations

import numpy as np
import pytest

from trueup.decide.e_process import log_evidence_known_variance, log_evidence_student
from trueup.decide.race import RaceRule, seed_noise
from trueup.errors import InvalidInputError
from trueup_optuna.final.allocation import next_training


def table(rows=6, seeds=5, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, seeds))


def slow_evidence(rule, values, n_seeds, challenger, comparator):
    shared = min(n_seeds[challenger], n_seeds[comparator])
    if shared < 2 or challenger == comparator:
        return -np.inf
    differences = values[challenger, :shared] - values[comparator, :shared] + rule.epsilon
    share = -np.log(rule.n_configs - 1)
    if rule.variance == "own":
        return share + log_evidence_student(differences.sum(), (differences**2).sum(), shared)
    noise = seed_noise(values, n_seeds)
    if noise.pooled_dof < 8:
        return -np.inf
    variance = noise.cautious[challenger] + noise.cautious[comparator]
    return share + log_evidence_known_variance(differences.sum() / np.sqrt(variance), shared)


@pytest.mark.parametrize("variance", ["moderated", "own"])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_evidence_equals_a_loop_over_pairs(variance, epsilon):
    rule = RaceRule(9, epsilon=epsilon, variance=variance)
    values, n_seeds = table(), np.array([5, 4, 1, 0, 3, 2])
    for challenger in range(6):
        expected = [slow_evidence(rule, values, n_seeds, challenger, b) for b in range(6)]
        found = rule.log_evidence(values, n_seeds, challenger)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_leading_axes_are_independent():
    values = np.random.default_rng(1).normal(size=(4, 6, 5))
    n_seeds = np.random.default_rng(2).integers(2, 6, size=(4, 6))
    together = RaceRule(6).log_evidence(values, n_seeds, 3)
    for index in range(4):
        alone = RaceRule(6).log_evidence(values[index], n_seeds[index], 3)
        np.testing.assert_allclose(together[index], alone, rtol=1e-10)


def test_a_clearly_worse_configuration_is_eliminated_and_the_better_one_is_not():
    values = table(rows=20, seeds=6)
    values[7] += 8.0
    rule = RaceRule(20)
    threshold = -np.log(rule.alpha)
    assert rule.log_evidence(values, np.full(20, 6), 7).max() > threshold
    for other in range(20):
        if other != 7:
            assert rule.log_evidence(values, np.full(20, 6), other).max() < threshold


def test_the_seeds_that_a_comparator_has_alone_are_not_used():
    values, n_seeds = table(), np.full(6, 5)
    n_seeds[0] = 3
    spoiled = values.copy()
    spoiled[0, 3:] = 1e6
    rule = RaceRule(6, variance="own")
    np.testing.assert_array_equal(
        rule.log_evidence(values, n_seeds, 1)[0], rule.log_evidence(spoiled, n_seeds, 1)[0]
    )


def test_shares_of_a_planned_race_sum_to_one():
    shares = np.exp(RaceRule(60).log_share(60, 17))
    assert np.delete(shares, 17).sum() == pytest.approx(1.0)


def test_shares_of_an_open_race_follow_the_order_of_arrival():
    shares = np.exp(RaceRule(None).log_share(4, 1))
    np.testing.assert_allclose(np.delete(shares, 1), [1 / 2, 1 / 6, 1 / 12])


def test_open_shares_never_exceed_one():
    shares = np.exp(RaceRule(None).log_share(5000, 0))
    assert shares[1:].sum() < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_configs": 1}, r"n_configs must be an integer of at least 2; got 1\. .* or None\."),
        ({"n_configs": "a"}, "n_configs must be an integer of at least 2; got 'a'"),
        ({"n_configs": 2.5}, "n_configs must be an integer of at least 2; got 2.5"),
        ({"n_configs": True}, "n_configs must be an integer of at least 2; got True"),
        ({"n_configs": 60, "alpha": "x"}, r"alpha must be in \(0, 1\); got 'x'\."),
        ({"n_configs": 60, "alpha": None}, r"alpha must be in \(0, 1\); got None\."),
        ({"n_configs": 60, "epsilon": "x"}, "epsilon must be finite and at least 0; got 'x'"),
        ({"n_configs": 60, "alpha": 0.0}, r"alpha must be in \(0, 1\); got 0\.0\."),
        ({"n_configs": 60, "alpha": 1.0}, r"alpha must be in \(0, 1\); got 1\.0\."),
        ({"n_configs": 60, "epsilon": -0.1}, r"epsilon must be finite and at least 0; got -0\.1\."),
        ({"n_configs": 60, "variance": "x"}, r'variance must be "moderated" or "own"; got \'x\'\.'),
    ],
)
def test_bad_rules_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        RaceRule(**arguments)


def choose(mean, n_seeds, alive=None, n_max=20):
    mean = np.array(mean, dtype=float)
    alive = np.ones(len(mean), bool) if alive is None else np.array(alive)
    return int(next_training(mean, np.ones(len(mean)), np.array(n_seeds), alive, n_max))


def test_leader_or_rival_is_trained_whichever_has_fewer_seeds():
    assert choose([0.0, 1.0, 5.0], [4, 2, 2]) == 1
    assert choose([0.0, 1.0, 5.0], [2, 4, 2]) == 0


def test_rival_is_the_most_optimistic_one_not_the_second_mean():
    # 1.2 - 1/sqrt(1) = 0.2 is below 1.0 - 1/sqrt(16) = 0.75.
    assert choose([0.0, 1.0, 1.2], [17, 16, 1]) == 2


def test_full_configurations_make_room():
    assert choose([0.0, 1.0, 2.0], [20, 20, 3]) == 2
    assert choose([0.0, 1.0], [20, 20]) == -1


def test_eliminated_configurations_get_no_seeds():
    assert choose([0.0, 1.0, 2.0], [5, 2, 2], [True, False, True]) == 2
    assert choose([0.0, 1.0], [5, 2], [True, False]) == -1
