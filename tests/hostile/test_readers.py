"""Spoilt bytes raise the documented error and take no memory: a short round of `make hostile`."""

from __future__ import annotations

import shutil

import pytest
from tests.hostile.readers import quick_targets, space_target, temporary_folder
from tests.hostile.trials import run

from trueup.errors import CorruptFileError, InvalidInputError

TRIALS = 40


@pytest.fixture(scope="module")
def targets():
    folder = temporary_folder()
    yield list(quick_targets(folder))
    shutil.rmtree(folder)


def test_spoilt_input_is_refused_or_read_and_nothing_else(targets):
    counts = [run(target, TRIALS) for target in targets]
    assert {one.name: one.failures for one in counts if one.failures} == {}
    assert sum(one.trials for one in counts) == TRIALS * len(targets) >= 500
    assert sum(one.refused for one in counts) > 0.7 * TRIALS * len(targets)


def test_the_errors_are_those_of_a_damaged_file(targets):
    for target in targets:
        with pytest.raises(InvalidInputError) as refusal:
            target.read(target.honest[: len(target.honest) // 2])
        assert isinstance(refusal.value, CorruptFileError)


def test_a_space_that_nobody_meant_is_refused_or_read_and_nothing_else(tmp_path):
    counts = run(space_target(tmp_path), 150)
    assert counts.failures == []
    assert 0 < counts.refused < counts.trials
