"""``Rolling`` uses nothing of the future: property tests, and leaky splits that they must catch.

A *what-if* is a set of rows together with the same rows after some of them got other labels and
predictions. Each property is a function that takes a split and a what-if, so that it can be shown
to fail on a split that leaks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup import Rolling, evaluate
from trueup.splits import Part, Split

UNIT = 4  # units of time in a period of the drawn rows
LOSSES = ("mean_squared_error", "log_loss", "poisson_deviance")


@dataclass(frozen=True)
class Rows:
    y_true: np.ndarray
    y_pred: np.ndarray
    times: np.ndarray
    row_id: np.ndarray

    def take(self, chosen):
        return Rows(*(value[chosen] for value in vars(self).values()))


@dataclass(frozen=True)
class Result:
    """What an evaluation did to each row, in the order of the rows; NaN where it is not scored."""

    group: np.ndarray
    bias: np.ndarray
    calibrated: np.ndarray


def apply(split, rows, loss):
    """Evaluate, and return each row's bias and calibrated prediction, checked against the score."""
    evaluation = evaluate(
        rows.y_true,
        rows.y_pred,
        loss=loss,
        split=split,
        times=rows.times,
        row_id=rows.row_id,
    )
    group = split.groups(rows.row_id, rows.times)
    parts = list(split.parts(int(group.max()) + 1))
    bias = np.full(len(group), np.nan)
    for part, term in zip(parts, evaluation.fold_bias_terms, strict=True):
        bias[group == part.scored] = term
    calibrated, value = corrected(rows, bias, loss)
    assert evaluation.n_scored == np.isfinite(bias).sum()
    assert evaluation.calibrated == pytest.approx(np.nanmean(value), rel=1e-9, abs=1e-12)
    return Result(group, bias, calibrated)


def corrected(rows, bias, loss):
    """Return the calibrated predictions and their losses, written out once more."""
    y, p = rows.y_true, rows.y_pred
    if loss == "mean_squared_error":
        return p + bias, (y - p - bias) ** 2
    if loss == "log_loss":
        q = 1.0 / (1.0 + (1.0 - p) / p * np.exp(bias))
        return q, -np.log(np.where(y == 1, q, 1.0 - q))
    rate = p * np.exp(bias)
    return rate, 2.0 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / rate), 0.0) - y + rate)


def same(found, expected):
    np.testing.assert_array_equal(found, expected)


def nothing_before_t_sees_rows_from_t_on(split, before, after, t, loss):
    """Rows from t on got other labels and predictions: all before t must stay, to the bit."""
    early = before.times < t
    first, second = apply(split, before, loss), apply(split, after, loss)
    for name in ("group", "bias", "calibrated"):
        same(getattr(second, name)[early], getattr(first, name)[early])


def nothing_before_t_needs_rows_from_t_on(split, rows, t, loss):
    """Without the rows from t on, all before t must stay."""
    early = rows.times < t
    if len(np.unique(split.groups(rows.row_id, rows.times)[early])) < 2:
        return
    whole, prefix = apply(split, rows, loss), rows.take(early)
    same(split.groups(prefix.row_id, prefix.times), whole.group[early])
    part = apply(split, prefix, loss)
    np.testing.assert_allclose(part.bias, whole.bias[early], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(part.calibrated, whole.calibrated[early], rtol=1e-12)


def bias_comes_from_the_previous_period_alone(split, before, other, loss):
    """Only rows of the previous period keep their values: the bias of a period must stay."""
    first = apply(split, before, loss)
    for k in range(1, int(first.group.max()) + 1):
        kept = first.group == k - 1
        mixed = replace(
            before,
            y_true=np.where(kept, before.y_true, other.y_true),
            y_pred=np.where(kept, before.y_pred, other.y_pred),
        )
        now = first.group == k
        same(apply(split, mixed, loss).bias[now], first.bias[now])


def bias_follows_the_previous_period(split, rows):
    """Labels of one period rise by 1: the bias of the next rises by 1, and no other one moves."""
    first = apply(split, rows, "mean_squared_error")
    for k in range(int(first.group.max()) + 1):
        raised = replace(rows, y_true=rows.y_true + (first.group == k))
        change = apply(split, raised, "mean_squared_error").bias - first.bias
        expected = np.where(first.group == 0, np.nan, 1.0 * (first.group == k + 1))
        np.testing.assert_allclose(change, expected, atol=1e-12)


def draw_values(data, n, loss):
    """Draw labels and predictions; each period holds both classes, see ``draw_times``."""
    if loss == "mean_squared_error":
        numbers = st.floats(-100, 100, allow_nan=False)
        y_true = data.draw(st.lists(numbers, min_size=n, max_size=n))
        y_pred = data.draw(st.lists(numbers, min_size=n, max_size=n))
    else:
        high = 1 if loss == "log_loss" else 5
        y_true = data.draw(st.lists(st.integers(0, high), min_size=n, max_size=n))
        share = st.floats(0.01, 0.99) if loss == "log_loss" else st.floats(0.1, 9.0)
        y_pred = data.draw(st.lists(share, min_size=n, max_size=n))
    return np.array(y_true, float), np.array(y_pred, float)


def draw_times(data, by_month):
    """Draw the times of 2 to 5 periods of 2 to 6 rows: ties, rows on the borders, and gaps."""
    n_periods = data.draw(st.integers(2, 5))
    gaps = data.draw(st.lists(st.integers(1, 2), min_size=n_periods, max_size=n_periods))
    starts = np.cumsum([0, *gaps[1:]])
    days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]  # of 2024
    times, period = [], []
    for k, start in enumerate(starts):
        length = 24 * days[start] if by_month else UNIT
        offset = st.sampled_from([0, length - 1]) | st.integers(0, length - 1)
        inside = data.draw(st.lists(offset, min_size=2, max_size=6))
        inside[0] = 0 if k == 0 else inside[0]  # periods count from the earliest time
        base = 24 * sum(days[:start]) if by_month else UNIT * start
        times += [int(base) + hour for hour in inside]
        period += [k] * len(inside)
    stamps = np.array(times)
    if by_month:
        stamps = np.datetime64("2024-01-01", "h") + stamps
    return stamps, np.array(period)


def with_both_classes(y_true, period):
    """Make the first two labels of each period 0 and 1, so that each bias is defined."""
    y_true = y_true.copy()
    for k in np.unique(period):
        y_true[np.flatnonzero(period == k)[:2]] = [0, 1]
    return y_true


@st.composite
def what_ifs(draw):
    """Draw a split, rows in any order, the same rows with other values, a loss and a time."""
    data = draw(st.data())
    by_month, loss = data.draw(st.booleans()), data.draw(st.sampled_from(LOSSES))
    times, period = draw_times(data, by_month)
    n = len(times)
    values = [draw_values(data, n, loss) for _ in range(2)]
    if loss != "mean_squared_error":
        values = [(with_both_classes(y, period), p) for y, p in values]
    order = np.array(data.draw(st.permutations(range(n))))
    rows, other = (Rows(y, p, times, np.arange(n)).take(order) for y, p in values)
    t = data.draw(st.sampled_from(sorted(set(times.tolist()))))
    split = Rolling("month") if by_month else Rolling(data.draw(st.sampled_from([UNIT, 4.0])))
    return split, rows, other, np.array(t, dtype=times.dtype), loss


def changed_from(t, rows, other):
    """Return the rows with the other values from t on."""
    late = rows.times >= t
    return replace(
        rows,
        y_true=np.where(late, other.y_true, rows.y_true),
        y_pred=np.where(late, other.y_pred, rows.y_pred),
    )


@settings(deadline=None, max_examples=150)
@given(what_ifs())
def test_no_row_before_t_sees_labels_or_predictions_from_t_on(drawn):
    split, rows, other, t, loss = drawn
    nothing_before_t_sees_rows_from_t_on(split, rows, changed_from(t, rows, other), t, loss)


@settings(deadline=None, max_examples=150)
@given(what_ifs())
def test_no_row_before_t_needs_rows_from_t_on(drawn):
    split, rows, _, t, loss = drawn
    nothing_before_t_needs_rows_from_t_on(split, rows, t, loss)


@settings(deadline=None, max_examples=100)
@given(what_ifs())
def test_bias_of_a_period_comes_from_the_previous_one_alone(drawn):
    split, rows, other, _, loss = drawn
    bias_comes_from_the_previous_period_alone(split, rows, other, loss)


@settings(deadline=None, max_examples=100)
@given(what_ifs())
def test_bias_of_a_period_follows_the_previous_one(drawn):
    split, rows, _, _, _ = drawn
    bias_follows_the_previous_period(split, rows)


@dataclass(frozen=True)
class OwnPeriod(Rolling):
    def parts(self, n_groups):
        return iter([Part(k, (k,)) for k in range(1, n_groups)])


@dataclass(frozen=True)
class NextPeriod(Rolling):
    def parts(self, n_groups):
        return iter([Part(k, (k + 1,)) for k in range(n_groups - 1)])


@dataclass(frozen=True)
class AllOtherPeriods(Rolling):
    def parts(self, n_groups):
        for k in range(1, n_groups):
            yield Part(k, tuple(other for other in range(n_groups) if other != k))


@dataclass(frozen=True)
class CountedFromTheLatestTime(Rolling):
    def groups(self, row_id, times):
        back = np.floor((times.max() - times) / self.period)
        return np.unique(-back, return_inverse=True)[1]


class ThirdsOfTheRows(Split):
    def groups(self, row_id, times):
        return np.argsort(np.argsort(times, kind="stable"), kind="stable") * 3 // len(times)

    def parts(self, n_groups):
        return iter([Part(k, (k - 1,)) for k in range(1, n_groups)])


@dataclass(frozen=True)
class AllEarlierPeriods(Rolling):
    def parts(self, n_groups):
        return iter([Part(k, tuple(range(k))) for k in range(1, n_groups)])


def fixed_rows():
    rng = np.random.default_rng(0)
    times = np.array([0, 1, 3, 4, 4, 7, 8, 8, 8, 11, 12, 15, 15, 17])
    order = rng.permutation(len(times))
    rows, other = (Rows(*rng.normal(size=(2, 14)), times, np.arange(14)) for _ in range(2))
    return rows.take(order), other.take(order)


def properties(split):
    """Run every property on the fixed rows and return the names of those that fail."""
    rows, other = fixed_rows()
    loss, failed = "mean_squared_error", set()
    checks = [
        (bias_comes_from_the_previous_period_alone, (rows, other, loss)),
        (bias_follows_the_previous_period, (rows,)),
    ]
    for t in np.unique(rows.times):
        changed = changed_from(t, rows, other)
        checks.append((nothing_before_t_sees_rows_from_t_on, (rows, changed, t, loss)))
        checks.append((nothing_before_t_needs_rows_from_t_on, (rows, t, loss)))
    for check, arguments in checks:
        try:
            check(split, *arguments)
        except AssertionError:
            failed.add(check.__name__)
    return failed


SEES, NEEDS = "nothing_before_t_sees_rows_from_t_on", "nothing_before_t_needs_rows_from_t_on"
ALONE, FOLLOWS = "bias_comes_from_the_previous_period_alone", "bias_follows_the_previous_period"
LEAKY = {
    OwnPeriod(UNIT): {SEES, NEEDS, ALONE, FOLLOWS},
    NextPeriod(UNIT): {SEES, NEEDS, ALONE, FOLLOWS},
    AllOtherPeriods(UNIT): {SEES, NEEDS, ALONE, FOLLOWS},
    CountedFromTheLatestTime(UNIT): {NEEDS},
    ThirdsOfTheRows(): {NEEDS},
    AllEarlierPeriods(UNIT): {ALONE, FOLLOWS},
}


def test_rolling_has_every_property_on_the_fixed_rows():
    assert properties(Rolling(UNIT)) == set()


@pytest.mark.parametrize("split", LEAKY, ids=lambda split: type(split).__name__)
def test_a_split_that_leaks_is_caught(split):
    assert properties(split) == LEAKY[split]
