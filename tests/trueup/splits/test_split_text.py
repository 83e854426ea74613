from __future__ import annotations

import pytest

from trueup import CrossFit, HoldOut, InSample, Rolling
from trueup.errors import InvalidInputError
from trueup.splits.assignment import parse_split


@pytest.mark.parametrize(
    "split",
    [
        CrossFit(),
        CrossFit(7, salt=-2),
        HoldOut(),
        HoldOut(0.25, salt=3),
        InSample(),
        Rolling("month"),
        Rolling(86400.0),
        Rolling("90min"),
    ],
)
def test_parsing_inverts_repr(split):
    assert parse_split(repr(split)) == split


def test_a_name_alone_takes_the_defaults():
    assert parse_split(" CrossFit ") == CrossFit()


@pytest.mark.parametrize("text", ["Rolling(7d)", "Rolling(period=1 week)", "Rolling('168h')"])
def test_a_duration_needs_no_quotes(text):
    assert parse_split(text) == Rolling("7d")
    assert parse_split("Rolling(month)") == Rolling("month")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Fold",
        "CrossFit(",
        "CrossFit(fold=3)",
        "Rolling",
        "HoldOut(__import__('os').getcwd())",
        "HoldOut('a' + 1)",
        "trueup.CrossFit()",
        "1",
        "CrossFit(**{'folds': 3})",
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(InvalidInputError, match="split must be one of CrossFit, HoldOut"):
        parse_split(text)


def test_bad_values_keep_the_message_of_the_split():
    with pytest.raises(InvalidInputError, match="folds must be an integer of at least 2; got 1"):
        parse_split("CrossFit(1)")
