from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import trueup_mlflow


def test_importing_the_package_loads_the_standard_library_only():
    code = "import sys; import trueup_mlflow; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert (
        loaded - set(sys.stdlib_module_names)
        <= {"trueup", "trueup_mlflow", "__main__"} | site_modules()
    )


@pytest.mark.parametrize("module", ["write.items", "log.prediction_table", "write.figures"])
def test_what_is_logged_is_decided_without_mlflow(module):
    code = f"import sys; import trueup_mlflow.{module}; assert 'mlflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def site_modules():
    code = "import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


@pytest.mark.parametrize("name", trueup_mlflow.__all__)
def test_a_function_is_not_hidden_by_its_module(name):
    handed_on = getattr(trueup_mlflow, name)
    assert callable(handed_on)
    assert handed_on is getattr(import_module(handed_on.__module__), name)
    assert name in dir(trueup_mlflow)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'trueup_mlflow' has no attribute 'nothing'"):
        _ = trueup_mlflow.nothing
