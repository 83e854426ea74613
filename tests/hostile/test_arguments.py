"""No value of any argument raises anything but the documented errors."""

from __future__ import annotations

import pytest
from tests.hostile.arguments import failures, public_calls

CALLS = dict(public_calls())


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_raise_documented_errors(name):
    assert list(failures(CALLS[name])) == []
