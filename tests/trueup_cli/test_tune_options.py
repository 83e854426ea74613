"""Budget, failures, grids and storages from the command line."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from tests.trueup_cli.tune_script import arguments, invoke
from tests.warm import PYTHON

from trueup_cli.tune import progress as tune_progress
from trueup_cli.tune import run as tune_run
from trueup_cli.tune.plan import TunePlan
from trueup_cli.tune.storage import load_study
from trueup_optuna import open_journal, recover_stale
from trueup_optuna.study.ranking import ranking_of
from trueup_optuna.study.trial_state import BEAT, configurations

SHORT = ["--seeds", "6", "--confirm", "2"]


def test_a_budget_splits_itself(folder):
    result = invoke("my_script.py:train_number", *SHORT, "--budget", "24")
    assert result.exit_code == 0, result.output
    table = ranking_of(load_study("trueup-study.journal", "trueup"))
    assert int(table.n_seeds.sum()) == 24
    assert "confirmed on 2 fresh seeds" in result.output
    again = invoke("my_script.py:train_number", *SHORT, "--budget", "30", "--resume")
    assert again.exit_code == 0, again.output
    assert int(ranking_of(load_study("trueup-study.journal", "trueup")).n_seeds.sum()) == 30


def test_a_budget_says_which_metric_it_goes_by_unless_told(folder):
    given = ["my_script.py:train", "--space", "space.yaml", *SHORT, "--budget", "20"]
    assert "\ngoes by the " in invoke(*given).output
    told = invoke(*given, "--study-name", "told", "--goes-by", "vanilla")
    assert told.exit_code == 0, told.output
    assert "goes by" not in told.output
    study = load_study("trueup-study.journal", "told")
    assert study.user_attrs["trueup:goes_by"] == "vanilla"


@pytest.mark.parametrize(("options", "unit"), [((), "trials"), (("--budget", "24"), "trainings")])
def test_lines_tell_how_far_a_long_study_is(folder, monkeypatch, options, unit):
    monkeypatch.setattr(tune_progress, "_FIRST_LINE", 0.02)
    slow = "def slow(trial, seed):\n    time.sleep(0.03)\n    return train_number(trial, seed)\n"
    with Path("my_script.py").open("a") as script:
        script.write(slow)
    given = options or ("--trials", "6", "--finals", "5")
    lines = invoke("my_script.py:slow", *SHORT, *given).stderr.splitlines()
    search, final = ([line for line in lines if line.startswith(s)] for s in ("search", "finals"))
    assert f"{unit} after 0:" in search[0]
    assert "trainings after" in final[-1]
    assert not options or final[-1].startswith("finals: 24 of 24 trainings")


def test_a_short_study_is_quiet_without_a_terminal(folder, monkeypatch):
    monkeypatch.setattr(tune_progress, "_FIRST_LINE", 600.0)  # short on a busy machine too
    assert invoke(*arguments()).stderr == ""


def test_a_terminal_shows_a_bar(folder):
    inner = "from trueup_cli.tune.command import tune; tune()"
    line = "stty rows 24 cols 80; exec " + shlex.join([PYTHON, "-c", inner, *arguments()])
    command = [sys.executable, "-c", f"import pty; pty.spawn(['sh', '-c', {line!r}])"]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert "search: 100%" in shown
    assert "6/6" in shown


@pytest.mark.parametrize(
    ("option", "value"),
    [("--trials", "3"), ("--n-base", "3"), ("--finals", "3"), ("--alpha", "0.1")],
)
def test_a_budget_stands_alone(folder, option, value):
    result = invoke("my_script.py:train_number", "--budget", "24", option, value)
    assert result.exit_code == 2
    assert f"--budget must stand alone; got {option} too" in result.output


def test_a_grid_is_tried_once(folder):
    Path("space.yaml").write_text(
        "x: {type: categorical, choices: [0.1, 0.5]}\ndepth: {type: int, low: 1, high: 2}\n"
    )
    result = invoke(*arguments("--sampler", "grid", "--trials", "50"))
    assert result.exit_code == 0, result.output
    trials = load_study("trueup-study.journal", "trueup").trials
    assert sorted((t.params["x"], t.params["depth"]) for t in trials) == [
        (0.1, 1),
        (0.1, 2),
        (0.5, 1),
        (0.5, 2),
    ]


def test_a_grid_needs_a_space(folder):
    result = invoke("my_script.py:train_number", "--sampler", "grid")
    assert result.exit_code == 2
    assert "--sampler must have a --space where it is grid" in result.output


def test_what_is_caught_fails_a_trial_and_the_study_goes_on(folder):
    script = Path("my_script.py")
    script.write_text(
        script.read_text()
        + """
def breaks(trial, seed):
    value = train_number(trial, seed)
    if trial.number == 2:
        raise MemoryError("no memory")
    return float("nan") if trial.number == 3 else value
"""
    )
    small = ("--trials", "6", "--finals", "3", *SHORT)
    assert invoke("my_script.py:breaks", *small, "--catch", "NoSuchError").exit_code == 2
    result = invoke("my_script.py:breaks", *small, "--catch", "MemoryError")
    assert result.exit_code == 0, result.output
    assert "left out because a seed failed: 2, the last trial 3: the result" in result.output
    trials = load_study("trueup-study.journal", "trueup").trials
    assert [t.number for t in trials if t.state == TrialState.FAIL] == [2, 3]
    assert len(trials) == 6


def test_epochs_are_pruned(folder):
    script = Path("my_script.py")
    script.write_text(
        script.read_text()
        + """
def epochs(trial, seed):
    import optuna
    value = 1.0 + train_number(trial, seed)
    for epoch in range(3):
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value
"""
    )
    small = ("--trials", "14", "--finals", "2", "--epoch-pruner", "median", *SHORT)
    result = invoke("my_script.py:epochs", *small, "--sampler-seed", "0")
    assert result.exit_code == 0, result.output
    states = {trial.state for trial in load_study("trueup-study.journal", "trueup").trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}
    refused = invoke(*arguments("--epoch-pruner", "median"))
    assert "--epoch-pruner must come without --space" in refused.output


@pytest.mark.parametrize("variable", ["TRUEUP_STORAGE", "OPTUNA_STORAGE"])
def test_the_environment_names_the_storage(folder, monkeypatch, variable):
    monkeypatch.setenv(variable, "elsewhere.journal")
    small = ("--trials", "2", "--finals", "0", "--confirm", "0", "--seeds", "3")
    assert invoke("my_script.py:train_number", *small).exit_code == 0
    assert Path("elsewhere.journal").exists()
    assert not Path("trueup-study.journal").exists()
    assert "2 configurations" in invoke("report").output


def test_no_argument_of_a_worker_names_the_storage(folder, monkeypatch):
    monkeypatch.setenv("TRUEUP_STORAGE", "secret-place.journal")
    program = "from trueup_cli import main; main()"
    command = [sys.executable, "-c", program, "tune", "my_script.py:train_number"]
    started = subprocess.Popen(
        [*command, "--trials", "6", "--finals", "2", "--workers", "2", *SHORT],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seen: set[str] = set()
    while started.poll() is None:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = process.read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if "trueup_cli" in line and str(sys.executable) in line:
                seen.add(line)
        time.sleep(0.02)
    assert started.returncode == 0
    assert any("tune.workers" in line for line in seen)
    assert not any("secret-place" in line for line in seen)


def test_between_a_death_and_its_retry_nobody_takes_the_place(tmp_path, monkeypatch):
    """Failing a dead trial and queueing it again are two steps, with other workers between."""
    plan = TunePlan("s.py:train", None, "s.journal", "s", trials=3)
    study = optuna.create_study(storage=open_journal(tmp_path / "journal.log"))
    for _ in range(2):
        study.tell(study.ask(), 1.0)
    dead = study.ask()
    dead.set_user_attr(BEAT, 0.0)
    taken = []

    def another_worker_asks(*_):
        other = optuna.load_study(study_name=study.study_name, storage=study._storage)
        trial = other.ask()
        taken.append(tune_run._is_wanted(other, trial, plan))
        other.tell(trial, state=TrialState.FAIL)
        return True

    monkeypatch.setattr("trueup_optuna.runtime.heartbeat.queue_again", another_worker_asks)
    recover_stale(study)
    monkeypatch.undo()
    recover_stale(study, grace=0.0)
    retry = study.ask()
    assert taken == [False]
    assert tune_run._is_wanted(study, retry, plan)
    assert not tune_run._is_wanted(study, study.ask(), plan)
    assert len(configurations(study.trials)) >= 3
