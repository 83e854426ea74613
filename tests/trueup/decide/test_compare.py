from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.comparison import compare, metric_accuracy, order_note, paired_win_rate
from trueup.decide.e_process import log_e_process
from trueup.errors import InvalidInputError

RNG = np.random.default_rng(3)
NOISE = RNG.normal(0, 0.01, 12)
WORSE = {seed: 0.50 + NOISE[seed] for seed in range(12)}
BETTER = {seed: 0.47 + NOISE[seed] + RNG.normal(0, 0.005) for seed in range(12)}


def test_clear_difference_is_decided():
    decision = compare(BETTER, WORSE)
    assert decision.verdict == "candidate"
    assert decision.low < decision.difference < decision.high < 0
    differences = [BETTER[seed] - WORSE[seed] for seed in range(12)]
    assert decision.difference == pytest.approx(np.mean(differences))
    assert log_e_process(differences)[-1] > math.log(20)
    assert (decision.estimand, decision.n_pairs, decision.n_dropped) == ("paired", 12, 0)


@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 2)), min_size=1, max_size=12))
def test_verdict_is_the_one_of_the_e_process(differences):
    decision = compare(dict(enumerate(differences)), dict.fromkeys(range(len(differences)), 0.0))
    decided = log_e_process(differences)[-1] > math.log(20)
    assert (decision.verdict != "inconclusive") == decided
    if decided:
        assert decision.verdict == ("candidate" if np.mean(differences) < 0 else "baseline")


def test_swapping_the_arms_mirrors_everything():
    forward, backward = compare(BETTER, WORSE), compare(WORSE, BETTER)
    assert backward.verdict == "baseline"
    assert (backward.low, backward.high) == pytest.approx((-forward.high, -forward.low))
    assert backward.p_better == pytest.approx(1 - forward.p_better)


def test_greater_is_better_turns_verdict_and_probability_only():
    loss, score = compare(BETTER, WORSE), compare(BETTER, WORSE, greater_is_better=True)
    assert score.verdict == "baseline"
    assert (score.difference, score.low, score.high) == (loss.difference, loss.low, loss.high)
    assert score.p_better == pytest.approx(1 - loss.p_better)


def test_probability_belongs_to_the_estimand():
    a, b = list(BETTER.values()), list(WORSE.values())
    paired, free = compare(BETTER, WORSE), compare(BETTER, WORSE, paired=False)
    rate, accuracy = paired_win_rate(a, b), metric_accuracy(a, b)
    assert (paired.p_better, paired.p_better_low) == (rate.value, rate.low)
    assert (free.p_better, free.p_better_high) == (accuracy.value, accuracy.high)
    assert (paired.estimand, free.estimand) == ("paired", "all pairs")


def test_verdict_says_that_the_difference_is_larger_than_min_effect():
    decision = compare(BETTER, WORSE)
    for min_effect in (0.9 * -decision.high, 1.1 * -decision.high):
        expected = "candidate" if decision.high < -min_effect else "inconclusive"
        assert compare(BETTER, WORSE, min_effect=min_effect).verdict == expected


def test_order_of_insertion_changes_nothing():
    backwards = dict(reversed(BETTER.items()))
    assert compare(backwards, WORSE) == compare(BETTER, WORSE)


def test_equal_runs_stay_inconclusive():
    decision = compare(WORSE, WORSE)
    assert decision.verdict == "inconclusive"
    assert (decision.difference, decision.p_better) == (0.0, 0.5)


def test_one_run_each_is_inconclusive_with_infinite_interval():
    decision = compare({0: 1.0}, {0: 2.0})
    assert decision.verdict == "inconclusive"
    assert (decision.low, decision.high) == (-math.inf, math.inf)
    assert "more seeds are needed" in str(decision)


def test_failed_seeds_are_an_error_unless_allowed_and_then_recorded():
    failed = {**BETTER, 3: math.nan}
    with pytest.raises(InvalidInputError, match=r"at seed 3. Rerun it, or pass allow_failed=True"):
        compare(failed, WORSE)
    decision = compare(failed, WORSE, allow_failed=True)
    assert (decision.failed_candidate, decision.n_pairs, decision.n_dropped) == ((3,), 11, 1)
    assert "1 failed run left out; 1 run without a partner left out" in str(decision)


def test_sentence_of_a_verdict():
    sentence = compare(BETTER, WORSE).sentence("DeepFM", "MLP")
    assert sentence.startswith("DeepFM beats MLP in 100% of 12 pairs that share a seed [74, 100];")
    assert sentence.endswith("on these rows.")


def test_sentence_puts_the_winner_first():
    assert str(compare(WORSE, BETTER)).startswith("baseline beats candidate in 100%")


def test_sentence_without_verdict_says_how_many_seeds_are_missing():
    few = {seed: value for seed, value in BETTER.items() if seed < 4}
    decision = compare(few, WORSE)
    assert str(decision).startswith("Inconclusive: candidate beats baseline in")
    assert f"{decision.seeds_needed()} would settle it at 95%." in str(decision)


def test_all_pairs_are_named_in_the_sentence():
    assert "of all pairs [" in str(compare(BETTER, WORSE, paired=False))


def test_dictionary_fits_into_json():
    plain = json.loads(json.dumps(compare({0: 1.0}, {0: 2.0}).to_dict(), allow_nan=False))
    assert plain["low"] is None
    assert plain["verdict"] == "inconclusive"
    assert plain["difference"] == -1.0


def test_order_note_speaks_up_where_the_metrics_disagree():
    vanilla, calibrated = compare(BETTER, WORSE), compare(WORSE, BETTER)
    assert order_note(vanilla, vanilla) == ""
    note = order_note(vanilla, calibrated)
    assert "disagree on the order" in note
    assert f"{2 * vanilla.difference:+.3g}" in note


@pytest.mark.parametrize("min_effect", [-0.1, math.nan, math.inf])
def test_bad_min_effect_is_refused(min_effect):
    with pytest.raises(InvalidInputError, match="min_effect must be finite and at least 0; got"):
        compare(BETTER, WORSE, min_effect=min_effect)
