"""What is missing is named with who needs it and the command that brings it."""

from __future__ import annotations

import compileall
import importlib.metadata
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import trueup
from trueup.extras import hand_on, install_command, installed_version, needed_by

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
try:
    {statement}
except ImportError as failure:
    print(failure)
"""
FIT = (
    "import trueup.monitoring as face; import numpy; r = numpy.random.rand(90, 2);"
    "face.ConsensusEstimator(len).fit(r, r[:, 0], r[:, 1])"
)
CHECK = (
    "import trueup.monitoring as face; import numpy; r = numpy.random.rand(90, 2);"
    "face.OneStepCheckModel().fit(r, r[:, 0], r[:, 1])"
)
MISSING = [
    ("from trueup.calibrators import PlattCalibrator", "PlattCalibrator", "sklearn", None),
    ("from trueup.resampling import nested_resampling", "nested_resampling", "joblib", None),
    (FIT, "ConsensusEstimator", "sklearn", None),
    (CHECK, "OneStepCheckModel.fit", "torch", None),
    ("from trueup_mlflow import autolog; autolog()", "autolog", "mlflow", None),
    ("from trueup_mlflow import backfill", "backfill", "mlflow", None),
    ("from trueup_mlflow import LightGBMCallback", "LightGBMCallback", "lightgbm", "monitor"),
    ("from trueup_mlflow.monitor import estimate", "estimate", "mlflow", None),
    ("from trueup_optuna import SeedObjective", "SeedObjective", "optuna", None),
    (
        "import trueup; trueup.evaluate([0, 1] * 50, [.2, .7] * 50).plot()",
        "plot",
        "matplotlib",
        "mlflow",
    ),
]


@pytest.mark.parametrize(("statement", "who", "package", "extra"), MISSING)
def test_a_missing_package_is_named_with_its_command(statement, who, package, extra):
    code = WITHOUT.format(package=package, statement=statement)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    extra = extra or {"joblib": "sklearn"}.get(package, package)
    assert run.stdout.strip() == f"{who} needs {package}. Run: pip install 'trueup[{extra}]'"


def test_a_mistake_in_a_face_is_no_missing_package(tmp_path, monkeypatch):
    (tmp_path / "face.py").write_text("if 0:\n    from trueup.nowhere import nothing as nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "face", import_module("face"))
    get, _ = hand_on("face")
    with pytest.raises(ModuleNotFoundError, match=r"trueup\.nowhere"):
        get("nothing")


def test_names_are_found_in_a_zip_file(tmp_path):
    source = Path(trueup.__file__).parents[1]
    archive = shutil.make_archive(tmp_path / "trueup", "zip", source, "trueup")
    program = "import sys; sys.path.insert(0, sys.argv[1]); import trueup; print(trueup.HoldOut())"
    command = [sys.executable, "-c", program + "; print(trueup.__file__)", archive]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:2] == [repr(trueup.HoldOut()), f"{archive}/trueup/__init__.py"]


def test_bytecode_alone_is_refused_in_words(tmp_path):
    package = shutil.copytree(Path(trueup.__file__).parent, tmp_path / "trueup")
    compileall.compile_dir(package, quiet=1, legacy=True)
    for source in package.rglob("*.py"):
        source.unlink()
    program = "import sys; sys.path.insert(0, sys.argv[1]); import trueup"
    command = [sys.executable, "-c", program, tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert said.endswith("__init__.pyc. Ship the .py files of trueup too.\n")


def test_the_error_says_which_package():
    with pytest.raises(ImportError, match="It needs no_such_package") as error, needed_by("It"):
        import_module("no_such_package.inside")
    assert error.value.name == "no_such_package"
    assert install_command("no_such_package") == "pip install no_such_package"
    assert install_command("transformers") == "pip install 'transformers[torch]'"


def test_a_build_without_the_gpu_counts_as_installed(monkeypatch):
    def version(name):
        if name == "tensorflow-cpu":
            return "2.20.0"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert installed_version("tensorflow") == "2.20.0"
    assert installed_version("xgboost") is None
