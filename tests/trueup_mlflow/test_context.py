from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from tests.databases import new_database
from tests.warm import PROGRAMS, PYTHON

from trueup_mlflow.context import is_switched_on

TRAIN = """
from sklearn.metrics import log_loss, mean_squared_error  # bound before mlflow is imported
import random
import numpy as np
import mlflow

rng = np.random.default_rng(7)
p = rng.uniform(0.05, 0.95, 400)
y = (rng.uniform(size=400) < p).astype(int)
with mlflow.start_run():
    for step in range(2):
        mlflow.log_metric("val_log_loss", log_loss(y, p * (0.8 + 0.1 * step)), step=step)
    mlflow.log_metrics({"rmse": float(np.sqrt(mean_squared_error(y, p)))})
"""
MLPROJECT = """
name: knows-nothing-of-trueup
entry_points:
  main:
    command: "python train.py"
"""


def environment(**variables):
    """Return the environment of a fresh process: nothing of trueup's unless it is given here."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRUEUP_", "MLFLOW_RUN_ID"))}
    path = os.pathsep.join([PROGRAMS, kept["PATH"]])
    return {**kept, "PATH": path, **variables}


def python(code, **variables):
    return _run(PYTHON, code, variables)


def cold_python(code, **variables):
    """Run code in a process that has imported nothing: for what turns on the order of imports."""
    return _run(sys.executable, code, variables)


def _run(program, code, variables):
    command = [program, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(**variables))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "MLproject").write_text(MLPROJECT)
    (folder / "train.py").write_text(TRAIN)
    return folder


def run_project(project, client, **variables):
    command = ["mlflow", "run", str(project), "--env-manager", "local"]
    command += ["--experiment-name", "tests"]
    given = environment(**variables)
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stderr
    experiment = client.get_experiment_by_name("tests")
    return client.search_runs([experiment.experiment_id], max_results=1)[0]


def test_unchanged_project_gains_twins_and_keeps_its_vanilla_metrics_bit_identical(client, project):
    without = run_project(project, client)
    with_autolog = run_project(project, client, TRUEUP_AUTOLOG="1")
    assert not any(key.startswith(("calibrated", "bias")) for key in without.data.metrics)
    assert not any(tag.startswith("trueup") for tag in without.data.tags)
    for key in without.data.metrics:
        histories = [
            [(m.step, m.value.hex()) for m in client.get_metric_history(run.info.run_id, key)]
            for run in (without, with_autolog)
        ]
        assert histories[0] == histories[1]
    assert with_autolog.data.metrics.keys() - without.data.metrics.keys() == {
        f"{kind}_{key}"
        for kind in ("calibrated", "bias_term", "bias_cost")
        for key in ("val_log_loss", "rmse")
    }
    history = client.get_metric_history(with_autolog.info.run_id, "calibrated_val_log_loss")
    assert [point.step for point in history] == [0, 1]
    assert with_autolog.data.tags["trueup.split"] == "CrossFit(folds=5, salt=0)"


BROKEN = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {error}("broken on purpose")

sys.meta_path.insert(0, Broken())
import mlflow
from mlflow.tracking.context.registry import resolve_tags
resolve_tags()
print("imported", mlflow.log_metric.__name__)
"""


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("trueup", "RuntimeError"),
        ("trueup.splits", "ImportError"),
        ("trueup_mlflow.autologging.session", "ValueError"),
    ],
)
def test_mlflow_imports_with_the_plugin_broken_on_purpose(module, error):
    done = python(BROKEN.format(module=module, error=error), TRUEUP_AUTOLOG="1")
    assert done.stdout.strip() == "imported log_metric", done.stderr
    assert done.stderr.count(f"trueup is off: {error}: broken on purpose") == 1


def test_mlflow_imports_where_the_warning_of_the_broken_plugin_is_an_error():
    code = BROKEN.format(module="trueup", error="ValueError")
    code = "import warnings; warnings.filterwarnings('error', 'trueup is off')\n" + code
    assert python(code, TRUEUP_AUTOLOG="1").stdout.strip() == "imported log_metric"


def test_seed_that_is_no_number_is_a_warning():
    done = python("import mlflow; print('imported')", TRUEUP_AUTOLOG="1", TRUEUP_SEED="many")
    assert done.stdout.strip() == "imported"
    assert "trueup is off: ValueError" in done.stderr


DRAW = """
import mlflow, random
import numpy, torch
print(random.random(), numpy.random.rand(), torch.rand(()).item())
"""


def test_seed_seeds_random_numpy_and_torch_where_autologging_is_on():
    def draw(run=python, **variables):
        return run(DRAW, **variables).stdout.split()

    first = draw(cold_python, TRUEUP_AUTOLOG="1", TRUEUP_SEED="3")
    assert len(first) == 3
    assert draw(TRUEUP_AUTOLOG="1", TRUEUP_SEED="3") == first
    assert not set(draw(TRUEUP_AUTOLOG="1")) & set(first)
    assert not set(draw(TRUEUP_SEED="3")) & set(first)


@pytest.mark.parametrize("run", [python, cold_python], ids=["before", "after"])
def test_torch_may_be_imported_before_mlflow_and_after(tmp_path, run):
    code = """
    import sys
    print("torch" in sys.modules)
    import mlflow, torch
    loss = torch.nn.BCEWithLogitsLoss()(torch.arange(-50.0, 50.0) / 30, (torch.arange(100) % 2.0))
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", loss.item())
    print("calibrated_loss" in mlflow.get_run(run.info.run_id).data.metrics)
    """
    store = new_database(tmp_path)
    done = run(code, TRUEUP_AUTOLOG="on", MLFLOW_TRACKING_URI=store)
    assert done.stdout.split() == [str(run is python), "True"], done.stderr
    assert "twins of loss." in done.stderr


def test_run_in_which_no_loss_was_seen_says_so(tmp_path):
    code = """
    import mlflow
    with mlflow.start_run():
        mlflow.log_metric("accuracy", 0.71234)
    """
    done = python(code, TRUEUP_AUTOLOG="1", MLFLOW_TRACKING_URI=new_database(tmp_path))
    assert "none of accuracy: no loss that trueup watches was computed" in done.stderr


@pytest.mark.parametrize("value", ["true", "YES", "on", " 1 "])
def test_each_word_for_yes_switches_on(monkeypatch, value):
    monkeypatch.setenv("TRUEUP_AUTOLOG", value)
    assert is_switched_on()


@pytest.mark.parametrize("value", ["", "0", "off", "no", "False"])
def test_each_word_for_no_leaves_it_off(monkeypatch, value):
    monkeypatch.setenv("TRUEUP_AUTOLOG", value)
    assert not is_switched_on()


def test_other_words_leave_it_off_with_a_warning_that_lists_the_right_ones(monkeypatch):
    monkeypatch.setenv("TRUEUP_AUTOLOG", "enabled")
    with pytest.warns(UserWarning, match="one of 1, true, yes, on to switch trueup on; got 'ena"):
        assert not is_switched_on()


def test_switched_off_nothing_is_loaded_or_hooked():
    done = python(
        """
        import mlflow, sys
        print(sorted(name for name in sys.modules if name.startswith("trueup")))
        """
    )
    assert done.stdout.strip() == "['trueup_mlflow', 'trueup_mlflow.context']", done.stderr


@pytest.mark.parametrize("first", ["trueup_mlflow.context", "mlflow", "trueup_mlflow.seeds"])
def test_mlflow_registers_the_context_whatever_is_imported_first(first):
    done = python(
        f"""
        import {first}, mlflow
        from mlflow.tracking.context.registry import _run_context_provider_registry as known
        print([type(one).__name__ for one in known].count("TrueupRunContext"))
        """
    )
    assert done.stdout.strip() == "1", done.stderr
    assert "Failure attempting to register" not in done.stderr
