"""The result of an evaluation."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from trueup import CrossFit, HoldOut, evaluate, require_same_rows

RNG = np.random.default_rng(0)
PROBA = RNG.uniform(0.05, 0.95, 400)
LABELS = (RNG.random(400) < PROBA**1.5).astype(int)
SITE = np.repeat(["a", "b"], 200)


def test_bias_cost_is_what_the_correction_saves():
    result = evaluate(LABELS, PROBA)
    assert result.bias_cost == result.vanilla_on_scored_rows - result.calibrated
    assert result.bias_cost > 0.0


def test_cross_fitted_bias_cost_may_be_negative_and_is_not_clipped():
    proba = np.full(100, 0.5)
    result = evaluate([0, 1] * 50, proba)
    assert result.bias_cost < 0.0


def test_result_is_frozen():
    result = evaluate(LABELS, PROBA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.vanilla = 0.0


@pytest.mark.parametrize("split", [CrossFit(), HoldOut(0.3)])
def test_to_dict_is_plain_json_and_complete(split):
    result = evaluate(LABELS, PROBA, fields={"site": SITE}, split=split)
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    names = {field.name for field in dataclasses.fields(result)}
    assert plain.keys() == names | {"bias_cost"}
    assert plain["spec"] == {"loss": "log_loss", "split": repr(split), "n_classes": 2}
    assert plain["fields"]["site"]["ece"] == result.fields["site"].ece


def test_to_dict_lists_the_bias_of_each_class():
    proba = np.tile([0.2, 0.3, 0.5], (90, 1))
    plain = evaluate(np.tile([0, 1, 2], 30), proba).to_dict()
    assert len(plain["bias_term"]) == 3
    assert [len(bias) for bias in plain["fold_bias_terms"]] == [3] * 5
    assert json.loads(json.dumps(plain)) == plain


def test_fingerprint_names_the_split():
    assert evaluate(LABELS, PROBA).fingerprint.endswith(":CrossFit(folds=5, salt=0)")


def test_same_rows_of_nothing_is_nothing():
    assert require_same_rows([]) == frozenset()
