from __future__ import annotations

import json
import subprocess

import optuna
import pytest
from tests.terminal import on_terminal
from tests.trueup_cli.tune_script import SCRIPT, arguments, forget_scripts, invoke
from tests.warm import PYTHON

from trueup.errors import InvalidInputError
from trueup_cli.tune.command import tune
from trueup_cli.tune.plan import TunePlan
from trueup_cli.tune.run import plan_sampler
from trueup_cli.tune.space import load_space, suggest
from trueup_cli.tune.storage import load_study
from trueup_optuna import open_journal
from trueup_optuna.study.trial_state import seed_records


def test_a_study_runs_to_the_confirmed_value(folder):
    result = invoke(*arguments())
    assert result.exit_code == 0, result.output
    assert "6 configurations" in result.output
    assert "confirmed on 3 fresh seeds" in result.output
    assert "vanilla: would have chosen" in result.output
    study = load_study("trueup-study.journal", "trueup")
    assert len(study.trials) == 6
    assert seed_records(study.trials[0].user_attrs)[0].vanilla is not None


def test_a_study_is_told_as_json(folder):
    result = invoke(*arguments("--json"))
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["confirmation"]["n"] == 3
    assert told["study"] == "trueup"
    assert told["confirmation"]["rival_number"] in {row["number"] for row in told["rows"]}


def test_the_decision_names_the_rival(folder):
    result = invoke(*arguments("--json"))
    rival = json.loads(result.stdout)["confirmation"]["rival_number"]
    again = invoke(*arguments("--resume"))
    assert f"against trial {rival}: difference" in again.output


def test_a_train_function_may_suggest_by_itself(folder):
    result = invoke("my_script.py:train_number", "--trials", "4", "--finals", "2")
    assert result.exit_code == 0, result.output
    assert "vanilla: not recorded" in result.output


def test_a_script_runs_once_a_process(folder):
    script = folder / "my_script.py"
    script.write_text(
        script.read_text() + "\nwith open('loads', 'a') as file:\n    file.write('x')\n"
    )
    assert invoke(*arguments()).exit_code == 0
    assert (folder / "loads").read_text() == "x"


def test_an_existing_study_needs_resume(folder):
    assert invoke(*arguments()).exit_code == 0
    again = invoke(*arguments())
    assert again.exit_code == 2
    assert "study must be new; got 'trueup'" in again.output
    resumed = invoke(*arguments("--resume", "--finals", "7"))
    assert resumed.exit_code == 0, resumed.output
    assert "confirmed on 3 fresh seeds" in resumed.output


@pytest.mark.parametrize("sampler", ["random", "tpe", "gp", "cmaes", "nsga2"])
def test_a_sampler_seed_repeats_a_study(folder, sampler):
    for name in "ab":
        options = ("--sampler", sampler, "--sampler-seed", "3", "--study-name", name)
        result = invoke(*arguments("--variance", "own", *options))
        assert result.exit_code == 0, result.output
    first, second = (load_study("trueup-study.journal", name) for name in "ab")
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]
    assert first.user_attrs["trueup:rule"]["variance"] == "own"


def test_workers_and_resumed_runs_draw_other_configurations():
    plan = TunePlan("s.py:train", None, "s.journal", "s", sampler="random", sampler_seed=3)
    space = optuna.distributions.FloatDistribution(0.0, 1.0)
    study = optuna.create_study()
    draws = [
        plan_sampler(plan, *key).sample_independent(study, None, "x", space)
        for key in [(0, 0), (0, 0), (1, 0), (0, 6)]
    ]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--alpha", "0.2", "0.05; got 0.2."),
        ("--epsilon", "0.1", "0.0; got 0.1."),
        ("--variance", "own", "'moderated'; got 'own'."),
        ("--trials", "60", "6; got 60."),
        ("--seeds", "20", "6; got 20."),
        ("--confirm", "5", "3; got 5."),
        ("--loss", "brier_score", "'log_loss'; got 'brier_score'."),
        ("--direction", "maximize", "'minimize'; got 'maximize'."),
    ],
)
def test_resuming_with_another_option_is_refused(folder, option, value, message):
    invoke(*arguments())
    result = invoke(*arguments("--resume", option, value))
    assert result.exit_code == 2
    assert f"{option} must be what the study 'trueup' was begun with, {message}" in result.output
    assert "Repeat the options of the first run" in result.output


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("x: {type: categorical, choices: [0.1, 0.2]}", "got 'x': {'type': 'categorical'"),
        ("x: {type: float, low: 0, high: 1}\ny: {type: int, low: 0, high: 1}", "got 'y': {'type'"),
    ],
)
def test_resuming_with_another_space_is_refused(folder, space, message):
    small = ["my_script.py:train", "--space", "space.yaml", "--trials", "2", "--confirm", "2"]
    (folder / "my_script.py").write_text("def train(params, seed):\n    return seed\n")
    (folder / "space.yaml").write_text("x: {type: float, low: 0.0, high: 1.0}")
    invoke(*small, "--finals", "1")
    (folder / "space.yaml").write_text(space)
    forget_scripts()
    result = invoke(*small, "--finals", "3", "--resume")
    assert result.exit_code == 2, result.output
    assert "--space must keep the parameters that the study was begun with" in result.output
    assert message in result.output


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--resume"], "study must exist in trueup-study.journal; got 'trueup'"),
        (["--workers", "2", "--storage", "sqlite:///a.db"], "--workers must be 1 with SQLite"),
        (["--loss", "auc"], "loss must be one of"),
        (["--confirm", "1"], "--confirm must be 0 or at least 2; got 1. An interval needs two"),
    ],
)
def test_bad_requests_exit_with_2(folder, changed, message):
    result = invoke(*arguments(*changed))
    assert result.exit_code == 2
    assert message in result.output


def test_the_confirmation_may_be_left_out(folder):
    result = invoke(*arguments("--confirm", "0"))
    assert result.exit_code == 0
    assert "confirmed" not in result.output


def test_help_names_both_commands():
    assert {"run", "report"} <= set(tune.commands)
    assert "trueup tune report" in invoke("--help").output
    assert "--space" in invoke("run", "--help").output


def test_workers_share_a_study_in_processes_of_their_own(folder):
    command = [PYTHON, "-c", "from trueup_cli.tune.command import tune; tune()"]
    run = subprocess.run(
        [*command, *arguments("--workers", "2")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert "confirmed on 3 fresh seeds" in run.stdout
    study = load_study("trueup-study.journal", "trueup")
    done = [trial for trial in study.trials if trial.state.is_finished()]
    assert 6 <= len(done) <= 7


def test_workers_that_all_fail_say_how_to_go_on(folder):
    (folder / "my_script.py").write_text(
        "def train(params, seed):\n    raise RuntimeError('disk')\n"
    )
    command = [PYTHON, "-c", "from trueup_cli.tune.command import tune; tune()"]
    run = subprocess.run(
        [*command, *arguments("--workers", "2")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 2
    assert "RuntimeError: disk" in run.stderr
    assert "a worker must finish the search; got exit codes [1, 1]" in run.stderr
    assert "--resume" not in run.stderr  # nothing is there to go on with
    assert optuna.get_all_study_names(open_journal(folder / "trueup-study.journal")) == []


def test_a_trial_that_another_worker_took_over_ends_no_worker(folder):
    (folder / "my_script.py").write_text(
        SCRIPT.format(pause=0.0).replace(
            "def train_number(trial, seed):",
            "def train_number(trial, seed):\n    bury_once()\n",
        )
        + """
buried = []

def bury_once():
    from trueup_cli.tune.run import load_study
    from trueup_optuna import recover_stale

    if not buried:
        buried.extend(recover_stale(load_study("trueup-study.journal", "trueup"), grace=-1.0))
"""
    )
    result = invoke("my_script.py:train_number", *arguments()[3:])
    assert result.exit_code == 0, result.output
    assert "trial 0 gave no sign of life" in result.output
    assert "6 configurations" in result.output


def test_a_terminal_gets_a_progress_bar(folder):
    command = [PYTHON, "-c", "from trueup_cli.tune.command import tune; tune()"]
    shown, _, code = on_terminal([*command, *arguments()])
    assert code == 0
    assert "search: 100%" in shown
    assert "finals" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: [", "space must be a YAML file; got"),
        ("x: {type: float, low: 2.0, high: 1.0}", "parameter 'x' must be a distribution"),
        ("x: {type: int, low: 0, high: 9, log: true}", "parameter 'x' must be a distribution"),
        ("x: {type: categorical, choices: 3}", "parameter 'x' must be a distribution"),
        ("x: {type: categorical, choices: []}", "parameter 'x' must be a distribution"),
        ("- 1", "space must be a mapping of parameter names; got list"),
        ("x: {low: 0, high: 1}", "type of parameter 'x' must be one of"),
        ("x: {type: float, low: 0}", r"keys of float parameter 'x' must be \['high', 'low'\]"),
        ("x: {type: int, low: 0, high: 1, base: 2}", "keys of int parameter 'x' must be"),
        (
            "x: {type: float, low: '1e-4', high: 1.0}",
            "low of parameter 'x' must be a number; got '",
        ),
        (
            "x: {type: float, low: 0.0, high: .inf}",
            "high of parameter 'x' must be a number; got inf",
        ),
        ("x: {type: float, low: 0.0, high: 1.0, log: 1}", "log of parameter 'x' must be true or"),
        (
            "x: {type: float, low: 0.0, high: 1.0, step: a}",
            "step of parameter 'x' must be a number",
        ),
        (
            "x: {type: int, low: 0.5, high: 2}",
            "low of parameter 'x' must be a whole number; got 0.5",
        ),
        (
            "x: {type: int, low: true, high: 2}",
            "low of parameter 'x' must be a whole number; got T",
        ),
        ("x: {type: int, low: 010, high: 12}", "low of parameter 'x' must be a whole .* '010'"),
        ("x: {type: categorical, choices: [on, no]}", 'must be quoted .* got on in line 1.*"on"'),
        ("x:\n  type: categorical\n  choices: [1, Yes]", "got Yes in line 3. Write"),
        ("on: {type: int, low: 0, high: 1}", "must be quoted .* got on in line 1"),
        (
            "x: {type: categorical, choices: [[1, 2]]}",
            r"got \[1, 2\] at index 0. Name it by a word",
        ),
        (
            "x: {type: categorical, choices: [{a: 1}]}",
            "choices of parameter 'x' must be numbers, wo",
        ),
        ("1: {type: int, low: 0, high: 1}", "names of parameters must be words; got 1"),
        ("x: {type: int, low: 0, high: 1, low: 2}", "keys of a space must differ; got 'low' twice"),
        ("x: \0", "space must be a YAML file"),
    ],
)
def test_bad_spaces_are_refused(tmp_path, text, message):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        load_space(path)


def test_a_space_suggests_each_kind_of_parameter(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(
        "a: {type: float, low: 1.0e-4, high: 0.1, log: true}\n"
        "b: {type: int, low: 2, high: 8, step: 2}\n"
        "c: {type: categorical, choices: [relu, tanh]}\n"
    )
    given = {"a": 0.01, "b": 4, "c": "tanh"}
    trial = optuna.trial.FixedTrial(given)
    assert suggest(trial, load_space(path)) == given
    assert trial.distributions["a"].log
    assert trial.distributions["b"].step == 2


def test_numbers_and_words_of_a_space_are_what_they_look_like(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(
        "a: {type: float, low: 1e-4, high: 1E+1, log: true}\n"
        "b: {type: float, low: 0, high: 1.0, step: 1e-1}\n"
        "c:\n  type: categorical\n"
        "  choices: [1e-3, .5, 1, 010, 12:30, 'on', \"no\", true, null, 2024-01-01]\n"
    )
    space = load_space(path)
    assert (space["a"]["low"], space["a"]["high"], space["b"]["step"]) == (1e-4, 10.0, 0.1)
    choices = [1e-3, 0.5, 1, "010", "12:30", "on", "no", True, None, "2024-01-01"]
    assert space["c"]["choices"] == choices
    assert [type(choice) for choice in space["c"]["choices"]] == [type(c) for c in choices]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "missing.py:train",
            "TRAIN must name a script that exists; got 'missing.py', which is not in {folder}. "
            "Correct the path.",
        ),
        (".:train", "TRAIN must name a script that exists; got '.', which is a folder."),
        (
            "my_script.py",
            "TRAIN must be script.py:function; got 'my_script.py'. Name the function behind a",
        ),
        ("space.yaml:train", "TRAIN must name a Python script; got 'space.yaml'. Give a file"),
        (
            "my_script.py:absent",
            "TRAIN must name a function of my_script.py; got 'absent'. "
            "It defines train, train_number.",
        ),
        ("empty.py:train", "got 'train'. It defines no function."),
    ],
)
def test_bad_targets_are_refused(folder, target, message):
    (folder / "empty.py").write_text("from math import sqrt\n")
    result = invoke(target, *arguments()[1:])
    assert result.exit_code == 2
    assert message.format(folder=folder) in result.output
    assert not (folder / "trueup-study.journal").exists()
