"""The checks pass on our losses and splits and name what is wrong with broken ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from trueup.losses import (
    LOSSES as KNOWN,
)
from trueup.losses import (
    LogLoss,
    SoftmaxBrierScore,
    SoftmaxLogLoss,
    SquaredError,
    TweedieDeviance,
)
from trueup.splits import CrossFit, HoldOut, InSample, Part, Rolling, Split
from trueup.testing import check_loss, check_split

LOSSES = [*KNOWN.values(), SoftmaxLogLoss(), SoftmaxBrierScore(), TweedieDeviance(1.2)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_our_losses_have_every_property(loss, seed):
    assert len(check_loss(loss, random_state=seed)) == 11


@pytest.mark.parametrize("split", [CrossFit(), CrossFit(2, salt=5), HoldOut(), InSample()])
def test_our_splits_have_every_property(split):
    assert len(check_split(split)) == 7


@pytest.mark.parametrize("split", [Rolling(10), Rolling(0.5), Rolling("month")])
def test_rolling_has_every_property(split):
    times = np.random.default_rng(0).permutation(np.arange(500))
    if split.period == "month":
        times = times.astype("datetime64[D]")
    assert len(check_split(split, times=times)) == 7


class MeanOverAllRows(SquaredError):
    def values(self, y_true, margin):
        return (y_true - y_true.mean()) * (y_true - margin)


class OneNumber(SquaredError):
    def values(self, y_true, margin):
        return np.asarray(((y_true - margin) ** 2).mean())


class WritesIntoItsInput(SquaredError):
    def correct(self, margin, bias):
        margin += bias
        return margin


class IgnoresWeights(SquaredError):
    def fit_bias(self, y_true, margin, weight):
        return np.asarray((y_true - margin).mean())


class SumsWeights(SquaredError):
    def fit_bias(self, y_true, margin, weight):
        weight = np.ones(len(y_true)) if weight is None else weight
        return np.asarray(weight @ (y_true - margin) / len(y_true))


class WrongSign(LogLoss):
    def correct(self, margin, bias):
        return margin + bias


class FirstRowOnly(SquaredError):
    def fit_bias(self, y_true, margin, weight):
        return np.asarray(y_true[0] - margin[0])


class Median(SquaredError):
    def fit_bias(self, y_true, margin, weight):
        repeats = np.ones(len(y_true)) if weight is None else weight
        scaled = np.round(repeats / repeats.min()).astype(int)
        return np.asarray(np.median(np.repeat(y_true - margin, scaled)))


class Vector(SquaredError):
    def fit_bias(self, y_true, margin, weight):
        return np.atleast_1d(super().fit_bias(y_true, margin, weight))


class AlwaysCorrects(SquaredError):
    def correct(self, margin, bias):
        return margin + bias + 1.0


class OneBiasOnly(SquaredError):
    def correct(self, margin, bias):
        return margin + float(bias)


class Fails(SquaredError):
    def link(self, y_pred):
        raise KeyError("no such link")


BROKEN_LOSSES = {
    MeanOverAllRows: "value_of_a_row_depends_on_that_row_alone",
    OneNumber: "values_are_one_finite_number_for_each_row",
    WritesIntoItsInput: "arguments_are_left_as_they_were",
    IgnoresWeights: "integer_weights_equal_repeated_rows",
    SumsWeights: "scale_of_weights_does_not_matter",
    WrongSign: "corrected_rows_have_no_bias_left",
    FirstRowOnly: "order_of_rows_does_not_matter",
    Median: "bias_minimises_the_mean_loss_where_it_says_so",
    Vector: "bias_has_one_term_for_each_column",
    AlwaysCorrects: "zero_bias_corrects_nothing",
    OneBiasOnly: "zero_bias_corrects_nothing",
    Fails: "KeyError: 'no such link'",
}


@pytest.mark.parametrize("broken", BROKEN_LOSSES, ids=lambda loss: loss.__name__)
def test_broken_loss_is_told_which_property_it_breaks(broken):
    with pytest.raises(AssertionError) as error:
        check_loss(broken())
    assert str(error.value).startswith(f"{broken.__name__} breaks")
    assert BROKEN_LOSSES[broken] in str(error.value)


def test_median_that_does_not_claim_to_minimise_passes():
    class HonestMedian(Median):
        minimised_by_bias = False

    assert len(check_loss(HonestMedian())) == 11


@dataclass(frozen=True)
class ByPosition(CrossFit):
    def groups(self, row_id, times):
        return np.arange(len(row_id)) % self.folds


@dataclass(frozen=True)
class Drawn(CrossFit):
    def groups(self, row_id, times):
        return np.random.default_rng().integers(0, self.folds, len(row_id))


@dataclass(frozen=True)
class Twice(InSample):
    def parts(self, n_groups):
        return iter([Part(0, (0,)), Part(0, (0,))])


@dataclass(frozen=True)
class Nowhere(InSample):
    def parts(self, n_groups):
        return iter([Part(0, (1,))])


@dataclass(frozen=True)
class FromOne(CrossFit):
    def groups(self, row_id, times):
        return super().groups(row_id, times) - 1


@dataclass(frozen=True)
class BySize(InSample):
    def groups(self, row_id, times):
        return np.full(len(row_id), int(len(row_id) > 800))


class Nameless(Split):
    def groups(self, row_id, times):
        return np.zeros(len(row_id), dtype=int)

    def parts(self, n_groups):
        yield Part(0, (0,))


BROKEN_SPLITS = {
    ByPosition: "group_of_a_row_does_not_depend_on_its_place",
    Drawn: "same_rows_give_the_same_groups_and_parts",
    Twice: "each_group_is_scored_at_most_once",
    Nowhere: "parts_name_groups_that_exist",
    FromOne: "groups_are_counted_from_zero",
    BySize: "later_rows_leave_the_groups_of_earlier_ones",
    Nameless: "repr_states_the_settings",
}


@pytest.mark.parametrize("broken", BROKEN_SPLITS, ids=lambda split: split.__name__)
def test_broken_split_is_told_which_property_it_breaks(broken):
    with pytest.raises(AssertionError, match=BROKEN_SPLITS[broken]):
        check_split(broken())
