"""Odd texts in options end a command in a few lines: a short round of `make hostile`."""

from __future__ import annotations

import logging

import pytest
from tests.hostile.commands import command_calls, failure_of, in_command_folder

EVERY = 23  # a prime, so that each option and each text has its turn


@pytest.fixture
def in_folder(tmp_path):
    logging.disable(logging.CRITICAL)  # MLflow and Optuna tell of each refusal
    with in_command_folder(tmp_path):
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("in_folder")
def test_odd_options_end_in_a_few_lines():
    calls = list(command_calls())[::EVERY]
    assert len(calls) > 250
    failed = {call: failure for call in calls if (failure := failure_of(call)) is not None}
    assert failed == {}
