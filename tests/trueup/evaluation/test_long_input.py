"""Long input is scored as short input is, by a summary or by its rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from tests.trueup.closeness import assert_close

from trueup import CrossFit, HoldOut, InSample, Rolling, evaluate
from trueup.errors import InvalidInputError, TrueupWarning


@pytest.mark.parametrize("split", [InSample(), CrossFit()])
def test_many_rows_of_several_classes_are_scored_as_few_are(split):
    rng = np.random.default_rng(5)
    table = softmax(rng.normal(size=(60_000, 3)), axis=1)
    classes = (rng.random(60_000)[:, None] > table.cumsum(axis=1)).sum(axis=1)
    result = evaluate(classes, table, split=split)
    assert result.vanilla == pytest.approx(log_loss(classes, table), rel=1e-12)
    assert len(result.bias_term) == 3


def test_long_input_with_logits_beyond_the_grid_is_scored_from_its_rows():
    rng = np.random.default_rng(0)
    logit, y_true = rng.normal(100.0, 5.0, 30_000), rng.integers(0, 2, 30_000)
    found = evaluate(y_true, y_logit=logit, split=InSample())
    corrected = logit - found.bias_term
    assert expit(corrected).mean() == pytest.approx(y_true.mean(), abs=1e-12)
    expected = np.logaddexp(0.0, corrected) - y_true * corrected
    assert found.calibrated == pytest.approx(expected.mean(), rel=1e-12)


@pytest.mark.parametrize("n", [100, 30_000])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": [0, 1]}, r"times must have shape \(\d+,\); got \(2,\)"),
        ({"times": "days"}, "times must be one-dimensional"),
        ({"threads": 0}, "threads must be an integer of at least 1; got 0"),
        ({"threads": -2}, "threads must be an integer of at least 1; got -2"),
        ({"threads": 1.5}, "threads must be an integer of at least 1; got 1.5"),
        ({"threads": True}, "threads must be an integer of at least 1; got True"),
    ],
)
def test_options_are_checked_on_short_and_long_input(n, options, message):
    p = np.random.default_rng(0).random(n)
    with pytest.raises(InvalidInputError, match=message):
        evaluate(np.arange(n) % 2, p, **options)


@pytest.mark.parametrize("n", [100, 30_000])
def test_missing_times_are_refused_on_short_and_long_input(n):
    times = np.zeros(n)
    times[3] = np.nan
    with pytest.raises(InvalidInputError, match="times must not be missing; got nan at index 3"):
        evaluate(np.arange(n) % 2, np.full(n, 0.3), times=times)


class ByParity(CrossFit):
    def groups(self, row_id, times):
        return (row_id % np.uint64(2)).astype(np.intp)


class ByParityOfTime(CrossFit):
    def groups(self, row_id, times):
        return (times % 2).astype(np.intp)


class InSampleByParity(InSample):
    n_groups = 2

    def groups(self, row_id, times):
        return (row_id % np.uint64(2)).astype(np.intp)


class HoldOutByParity(HoldOut):
    def groups(self, row_id, times):
        return (row_id % np.uint64(2)).astype(np.intp)


@pytest.mark.parametrize(
    "split", [ByParity(2), ByParityOfTime(2), HoldOutByParity(), InSampleByParity()], ids=repr
)
def test_groups_of_a_subclass_count_on_long_input(split, kernels, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(30_000)
    y_true = (rng.random(30_000) < p**1.2).astype(float)
    y_true[::2] = 1.0 - y_true[::2]
    options = {"split": split, "times": np.arange(30_000)}
    found = evaluate(y_true, p, **options)
    monkeypatch.setattr("trueup.evaluation.evaluate._LONG", 10**9)
    assert_close(found, evaluate(y_true, p, **options))
    evens = evaluate(y_true[::2], p[::2], split=InSample())
    if not isinstance(split, InSample):
        fitted_on_evens = {ByParity: 1, ByParityOfTime: 1, HoldOutByParity: 0}[type(split)]
        assert found.fold_bias_terms[fitted_on_evens] == pytest.approx(evens.bias_term, abs=1e-10)


@pytest.mark.parametrize("n", [100, 30_000])
@pytest.mark.parametrize("split", [CrossFit(), HoldOut(0.5), InSample(), Rolling(40)], ids=str)
def test_times_that_a_split_does_not_read_are_said_once(n, split):
    p, y_true = np.full(n, 0.3), np.arange(n) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrueupWarning)
        evaluate(y_true, p, times=np.arange(n) % 100, split=split)
        evaluate(y_true, p, split=CrossFit())
    said = [str(one.message) for one in caught if "has no effect" in str(one.message)]
    ignored = not isinstance(split, Rolling)
    assert len(said) == ignored
    assert all(f"times= has no effect with {split}. Choose a split by time" in one for one in said)
