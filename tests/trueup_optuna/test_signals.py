# ruff: noqa: PT012  (where in a block a signal arrives is what is tested)
"""Which moments a signal may interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest
from tests.warm import PYTHON

from trueup_optuna.runtime import signals
from trueup_optuna.runtime.signals import hear_signals, hold_signals


def press(number=signal.SIGINT):
    signal.raise_signal(number)


@pytest.fixture(autouse=True)
def _handlers_are_given_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_held_signal_arrives_when_the_block_ends():
    done = []
    with pytest.raises(KeyboardInterrupt), hold_signals():
        press()
        done.append("all of the block")
    assert done


def test_a_held_signal_arrives_where_signals_are_heard():
    cleaned = []
    with pytest.raises(KeyboardInterrupt), hold_signals():
        press()
        try:
            with hear_signals():
                pytest.fail("heard too late")
        finally:
            press()  # waits until the cleaning is done
            cleaned.append(True)
    assert cleaned


def test_a_signal_that_was_heard_leaves_the_cleaning_alone():
    cleaned = []
    with pytest.raises(KeyboardInterrupt), hold_signals():
        try:
            with hear_signals():
                press()
        finally:
            press()
            cleaned.append(True)
    assert cleaned


def test_blocks_nest():
    passed = []
    with pytest.raises(KeyboardInterrupt), hold_signals():
        with hold_signals():
            press()
        passed.append("the end of an inner block")
        with hear_signals():
            pytest.fail("heard too late")
    assert passed


def test_a_training_may_hold_signals_as_well():
    passed = []
    with pytest.raises(KeyboardInterrupt), hold_signals(), hear_signals(), hear_signals():
        with hold_signals():
            press()
            passed.append("a call of the trial")
        pytest.fail("heard too late")
    assert passed


def test_hearing_alone_changes_nothing():
    with pytest.raises(KeyboardInterrupt), hear_signals():
        press()


def test_a_handler_that_does_not_raise_goes_on():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        with hold_signals():
            press(signal.SIGTERM)
            assert heard == []
            with hear_signals():
                assert heard == [signal.SIGTERM]
                press(signal.SIGTERM)
                assert len(heard) == 2
            press(signal.SIGTERM)
            assert len(heard) == 2
        assert len(heard) == 3
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_that_replaced_itself_stays_replaced():
    def once(number, _frame):
        signal.signal(number, signal.SIG_IGN)

    before = signal.signal(signal.SIGTERM, once)
    try:
        with hold_signals():
            with hear_signals():
                press(signal.SIGTERM)
            press(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_error_of_the_block_is_kept_beside_the_signal():
    with pytest.raises(KeyboardInterrupt) as stop, hold_signals():
        press()
        raise RuntimeError("disk")
    assert isinstance(stop.value.__context__, RuntimeError)


def test_a_second_signal_gets_through_what_hangs(monkeypatch):
    with pytest.raises(KeyboardInterrupt), hold_signals():
        press()
        press()  # two at once are one
        monkeypatch.setattr(signals, "PATIENCE", 0.0)
        press()
        pytest.fail("still held")


def test_other_threads_hold_nothing():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with hold_signals():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    try:
        with pytest.raises(KeyboardInterrupt):
            press()
    finally:
        leave.set()
        thread.join()


TERMINATED = """
import os, signal
from trueup_optuna.runtime.signals import hold_signals

with hold_signals():
    os.kill(os.getpid(), signal.SIGTERM)
    print("held", flush=True)
"""


@pytest.mark.skipif(  # on Windows `os.kill` ends a process at once: no signal can be held back
    os.name != "posix", reason="Windows knows no SIGTERM from outside"
)
def test_a_signal_without_a_handler_ends_the_program_as_ever():
    run = subprocess.run([PYTHON, "-c", TERMINATED], capture_output=True, timeout=300)
    assert (run.returncode, run.stdout) == (-signal.SIGTERM, b"")


def test_a_handler_that_a_training_leaves_behind_still_interrupts():
    before = signal.getsignal(signal.SIGINT)
    try:
        with hold_signals(), hear_signals():
            inner = signal.getsignal(signal.SIGINT)
            signal.signal(signal.SIGINT, lambda number, frame: inner(number, frame))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
