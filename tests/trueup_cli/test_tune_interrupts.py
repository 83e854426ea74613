"""Signals end a study and all of its processes, and leave what resumes at once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from optuna.trial import TrialState
from tests.forked import PROCESSES
from tests.trueup_cli.tune_script import SCRIPT, arguments, invoke, waits_for_nobody
from tests.trueup_optuna.grace import let_grace_pass
from tests.warm import PYTHON

from trueup.errors import InvalidInputError
from trueup_cli.shell.interrupts import interruptible
from trueup_cli.tune import workers
from trueup_cli.tune.command import tune
from trueup_cli.tune.storage import load_study
from trueup_optuna.study.trial_state import root_number, seed_records

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


TRAIN = """def train(params, seed):
    own = pathlib.Path(f"pid-{{os.getpid()}}")
    is_first = not own.exists()
    own.touch()
    while len(list(pathlib.Path().glob("pid-*"))) < {workers}:  # the other one may start late
        time.sleep(0.02)
"""
# Such a training does not end while the parent lives, however late that is killed. With PYTHON it
# would not be the parent's child, and would end a moment after what was killed in its place.
OUTLIVES_ITS_PARENT = """
    if {condition}:
        while os.getppid() == PARENT:
            time.sleep(0.02)
        time.sleep(1.0)  # in which the worker hears of it
"""
IN_THE_FINALS = 'b"::finals" in pathlib.Path("trueup-study.journal").read_bytes()'


def write_script(folder, train="", pause=0.0, workers=1):
    """Write the script; each process that trains leaves a file with its id."""
    script = SCRIPT.format(pause=pause).replace(
        "def train(params, seed):\n", TRAIN.format(workers=workers) + train
    )
    head = "import os, pathlib\nPARENT = os.getppid()\n"
    (folder / "my_script.py").write_text(head + script)


def be_the_command(output, patience, python, given):
    """Do in a process of its own what the shell's command does; its workers are programs."""
    sys.executable = python
    os.setsid()
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    output.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    workers.PATIENCE = patience
    tune(given)


def interrupted(
    number,
    *more,
    patience=60.0,
    python=PYTHON,
    ready=lambda: finished_seeds() >= 3,
    again=None,
):
    """Begin a study, send the signal to its first process alone, and return code and output.

    The signal is sent again when that is asked for; then a file says so.
    """
    reader, writer = PROCESSES.Pipe(duplex=False)
    run = PROCESSES.Process(
        target=be_the_command, args=(writer, patience, python, arguments(*more))
    )
    run.start()
    writer.close()
    wait_until(lambda: ready() or not run.is_alive())
    assert run.is_alive(), everything(reader)
    os.kill(run.pid, number)
    if again is not None:
        wait_until(lambda: again() or not run.is_alive())
        if run.is_alive():
            os.kill(run.pid, number)
        Path("pressed-twice").touch()
    output = everything(reader)
    run.join(300)
    return run.exitcode, output


def wait_until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def everything(reader):
    """Read what a command writes, until all that hold its output open have ended."""
    parts = []
    while select.select([reader], [], [], 300)[0] and (part := os.read(reader.fileno(), 65_536)):
        parts.append(part)
    reader.close()
    return b"".join(parts).decode()


def finished_seeds():
    try:
        study = load_study("trueup-study.journal", "trueup")
    except InvalidInputError:
        return 0
    return sum(len(seed_records(trial.user_attrs)) for trial in study.trials)


def finals(state):
    try:
        study = load_study("trueup-study.journal", "trueup::finals")
    except InvalidInputError:
        return []
    return study.get_trials(states=(state,))


def trained_in(folder):
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def both_train(folder):
    return len(trained_in(folder)) == 2 and finished_seeds() >= 2


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def check_resumes(folder):
    before = finished_seeds()
    write_script(folder)
    result = invoke(*arguments("--resume"))
    assert result.exit_code == 0, result.output
    assert before >= 1
    assert "6 configurations" in result.output
    assert "confirmed on 3 fresh seeds" in result.output


@SIGNALS
def test_a_process_that_is_interrupted_leaves_a_study_that_resumes(folder, number):
    write_script(folder, pause=0.3)
    code, errors = interrupted(number)
    assert code == 128 + number, errors
    assert "Go on with --resume" in errors
    assert waits_for_nobody()
    check_resumes(folder)


@SIGNALS
def test_workers_end_with_their_parent(folder, number):
    write_script(folder, pause=0.3, workers=2)
    code, errors = interrupted(
        number,
        "--workers",
        "2",
        ready=lambda: both_train(folder),
    )
    assert code == 128 + number, errors
    assert "Go on with --resume" in errors
    assert "Traceback" not in errors
    assert len(trained_in(folder)) == 2
    assert not any(is_alive(process) for process in trained_in(folder))
    assert waits_for_nobody()
    check_resumes(folder)


def test_a_second_ctrl_c_leaves_the_workers_time_to_mark_their_trials(folder):
    slow_to_end = """
    try:
        time.sleep(0.2)
    except BaseException:
        pathlib.Path(f"ends-{os.getpid()}").touch()
        while not pathlib.Path("pressed-twice").exists():
            time.sleep(0.02)
        time.sleep(0.5)  # in which the first process hears of it
        raise
"""
    write_script(folder, slow_to_end, workers=2)
    code, errors = interrupted(
        signal.SIGINT,
        *("--workers", "2"),
        ready=lambda: both_train(folder),
        again=lambda: list(folder.glob("ends-*")),
    )
    assert code == 128 + signal.SIGINT, errors
    assert waits_for_nobody()
    check_resumes(folder)


def test_workers_whose_parent_is_killed_finish_their_seeds_and_end(folder):
    begun = """
    with open("begun", "a") as file:
        file.write("a seed\\n")
"""
    held = OUTLIVES_ITS_PARENT.format(condition="not is_first")
    write_script(folder, begun + held, workers=2)
    code, errors = interrupted(  # which waits for all that hold its standard output open
        *(signal.SIGKILL, "--workers", "2"),
        python=sys.executable,
        ready=lambda: both_train(folder),
    )
    assert code == -signal.SIGKILL
    assert "Traceback" not in errors
    trials = load_study("trueup-study.journal", "trueup").trials
    seeds = {(root_number(t), s.seed) for t in trials for s in seed_records(t.user_attrs)}
    assert len(seeds) == len((folder / "begun").read_text().splitlines())
    assert len(seeds) < 10  # of at least 12 in the search; two of each worker, if it hears at once
    assert waits_for_nobody()
    check_resumes(folder)


def test_workers_whose_parent_is_killed_end_in_the_finals_too(folder):
    write_script(folder, OUTLIVES_ITS_PARENT.format(condition=IN_THE_FINALS))
    code, _ = interrupted(
        *(signal.SIGKILL, "--workers", "2"),
        python=sys.executable,
        ready=lambda: finals(TrialState.RUNNING),
    )
    assert code == -signal.SIGKILL
    assert not finals(TrialState.RUNNING)
    assert (
        1 <= len(finals(TrialState.COMPLETE)) <= 3
    )  # of five; one of each worker, if it hears at once
    check_resumes(folder)


def test_workers_that_hear_no_signal_are_killed(folder):
    deaf = """
    while seed > 0:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
    write_script(folder, deaf, workers=2)
    code, errors = interrupted(
        signal.SIGTERM,
        *("--workers", "2"),
        patience=0.5,
        python=sys.executable,
        ready=lambda: both_train(folder),
    )
    assert code == 128 + signal.SIGTERM, errors
    assert len(trained_in(folder)) == 2
    assert not any(is_alive(process) for process in trained_in(folder))
    let_grace_pass(load_study("trueup-study.journal", "trueup"))
    check_resumes(folder)


def test_workers_hear_signals_before_they_load_what_takes_seconds():
    loaded = "import sys, trueup_cli.tune.workers; print('optuna' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, timeout=300
    )
    assert run.stdout == "False\n", run.stderr


def test_only_the_first_signal_interrupts_a_worker():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    cleaned = []

    def work():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned.append(True)

    with interruptible(once=True), pytest.raises(KeyboardInterrupt) as stop:
        work()
    assert cleaned
    assert stop.value.args == (signal.SIGTERM,)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


FORK = """
import os, signal, time
from trueup_cli.shell.interrupts import interruptible

with interruptible(once=True):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    time.sleep(0.2)
    os.kill(child, signal.SIGTERM)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]))
"""


def test_processes_that_training_forks_end_as_they_did():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"{signal.SIGTERM:d}\n", "")
