"""What a user can get wrong at the shell ends with exit code 2 and a message that helps."""

from __future__ import annotations

import subprocess

import pytest
from tests.trueup_cli.tune_script import SCRIPT, arguments, forget_scripts, invoke, waits_for_nobody
from tests.warm import PYTHON


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("command", ["run", "report"])
@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (
            "postgresql+psycopg://me:secret@127.0.0.1:1/x",
            "--storage must be a database that can be opened; got "
            "'postgresql+psycopg://me:***@127.0.0.1:1/x'. Start its server or correct the URL",
        ),
        ("sqlite:////dev/null/a.db", "--storage must be a database that can be opened; got"),
        ("sqlite:///notes.txt", "--storage must be a database that can be opened; got"),
        (
            "foo://x",
            "--storage must be a database URL whose driver is installed; got 'foo://x'. Correct "
            "the URL, which looks like postgresql+psycopg://user@host/name, or give the path of",
        ),
        ("postgresql+psycopg://me@127.0.0.1:port/x", "--storage must be a database URL"),
        ("postgresql+nothing://x/y", "--storage must be a database URL whose driver is installed"),
        (
            "notes.txt",
            "--storage must be a database URL or the path of a journal file; got 'notes.txt', and "
            "its first line is no operation of a study. Give the path of a new file or of the",
        ),
        ("picture.png", "the path of a journal file; got 'picture.png'"),
        *(
            (f"{name}.journal", f"the path of a journal file; got '{name}.journal'")
            for name in ("broken", "nul", "half", "bytes", "list", "surrogate", "long")
        ),
    ],
)
def test_a_storage_that_cannot_be_used(folder, command, storage, message):
    files = {
        "notes.txt": b"remember the milk\n" * 100,
        "picture.png": b"\x89PNG\x00\xff\n",
        "broken.journal": b'{"op_code":0,"worker_id":"a"\nx\n{"op_code":0}\n',
        "nul.journal": b'{"op_code":0,"worker\0_id":"a"}\n{"op_code":0}\n',
        "half.journal": b'{"op_code":0,"wor\n{"op_code":0}\n',
        "bytes.journal": b'{"op_code":0,"worker_id":"\xff"}\n',
        "list.journal": b'{"op_code":"0"}\n[]\n',
        "surrogate.journal": b'{"op_code":"\\ud800","worker_id":"a"}\n',
        "long.journal": b'{"op_code":"' + b"x" * 10**7 + b'"}\n',
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    given = [] if command == "report" else arguments()
    result = invoke(command, *given, "--storage", storage)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert len(result.output) < 1_000
    assert "secret" not in result.output
    assert {name: (folder / name).read_bytes() for name in files} == files


@pytest.mark.parametrize("name", ["report.foo", "report", "report.png.txt"])
def test_a_plot_needs_a_known_suffix(folder, name):
    invoke(*arguments())
    result = invoke("report", "--plot", name)
    assert result.exit_code == 2
    assert f"--plot must end in .png, .svg, .pdf; got '{name}'." in result.output


TRAIN = "def train(params, seed):\n"
NO_SPACE = "--space must be given where TRAIN is train(params, seed); got none, and"


@pytest.mark.parametrize(
    "use", ["params['x']", "params.get('x')", "dict(params)", "dict(**params)", "'x' in params"]
)
def test_a_train_function_of_params_needs_a_space(folder, use):
    (folder / "my_script.py").write_text(f"def train(params, seed):\n    return {use}\n")
    result = invoke("my_script.py:train", "--trials", "3")
    assert result.exit_code == 2
    assert NO_SPACE in result.output
    assert "EpochTrial" not in result.output
    assert "--resume" not in result.output
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.0))
    assert invoke(*arguments()).exit_code == 0  # with other options as well: it begins anew


def test_an_error_after_results_keeps_the_study(folder):
    failing = "def train(params, seed):\n    if seed == 2:\n        raise OSError('full')\n"
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.0).replace(TRAIN, failing, 1))
    result = invoke(*arguments())
    assert result.exit_code == 2
    kept = "The study is kept. Mend the error and go on with --resume."
    assert f"{kept}\nError: full" in result.output
    forget_scripts()
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.0))
    assert invoke(*arguments("--resume")).exit_code == 0


def test_a_training_that_exits_leaves_its_trial_to_whoever_resumes(folder):
    exits = TRAIN + "    if seed == 2:\n        raise SystemExit(3)\n"
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.0).replace(TRAIN, exits, 1))
    result = invoke(*arguments())
    assert result.exit_code == 3
    assert "the study is kept. Go on with --resume" in result.output
    assert waits_for_nobody()
    (folder / "my_script.py").write_text(SCRIPT.format(pause=0.0))
    forget_scripts()
    assert "6 configurations" in invoke(*arguments("--resume")).output


def test_a_worker_says_in_a_line_what_is_wrong(folder):
    (folder / "my_script.py").write_text("def train(params, seed):\n    return params['x']\n")
    command = [PYTHON, "-c", "from trueup_cli.tune.command import tune; tune()"]
    given = ["my_script.py:train", "--trials", "3", "--workers", "2"]
    run = subprocess.run([*command, *given], capture_output=True, text=True, timeout=300)
    assert run.returncode == 2
    assert NO_SPACE in run.stderr
    assert "Traceback" not in run.stderr


def test_a_train_function_of_a_trial_needs_no_space(folder):
    result = invoke("my_script.py:train_number", *arguments()[1:])
    assert result.exit_code == 2
    assert "--space must be left out where TRAIN calls the suggest methods" in result.output


def test_other_errors_of_a_train_function_keep_their_traceback(folder):
    (folder / "my_script.py").write_text("def train(trial, seed):\n    return trial.sugest('x')\n")
    with pytest.raises(AttributeError, match="sugest"):
        invoke("my_script.py:train", "--trials", "3")


def test_a_search_that_failed_as_a_whole_says_by_what(folder):
    (folder / "my_script.py").write_text("def train(x, seed):\n    raise KeyError('nope')\n")
    result = invoke(*arguments()[:1], "--catch", "KeyError", *arguments()[1:])
    assert result.exit_code == 2
    assert "that failed, the last by" in result.output
    assert "nope" in result.output


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("def train(params): return 1.0", "TRAIN must take (params, seed); got (params). Give it"),
        ("def train(): return 1.0", "TRAIN must take (params, seed); got (). Give it both"),
        (
            "def train(params, seed): return params['rate']",
            "TRAIN must read parameters that --space names; got 'rate', and it names rat. Correct",
        ),
    ],
)
def test_a_train_function_that_does_not_fit_the_space_is_refused_in_a_line(folder, train, message):
    (folder / "own.py").write_text(train)
    (folder / "rat.yaml").write_text("rat: {type: float, low: 0.1, high: 2.0}")
    result = invoke("own.py:train", "--space", "rat.yaml", "--trials", "2")
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_a_train_function_may_catch_a_parameter_that_is_not_there(folder):
    (folder / "own2.py").write_text(
        "def train(params, seed):\n"
        "    try:\n"
        "        return params['rate']\n"
        "    except KeyError:\n"
        "        return params['rat'] + params.get('rate', 0.0) + 0.01 * seed\n"
    )
    (folder / "rat.yaml").write_text("rat: {type: float, low: 0.1, high: 2.0}")
    given = ["--space", "rat.yaml", "--trials", "2", "--finals", "0", "--confirm", "0"]
    result = invoke("own2.py:train", *given)
    assert result.exit_code == 0, result.output
