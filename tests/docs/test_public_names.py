"""Every public name has a docstring with an example that runs, and a place in the reference."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))
from hooks import MODULES, REFERENCE, public_names, refusals  # noqa: E402

PACKAGES = [package for page in REFERENCE.values() for package, _ in page]
SINGLE = [module for page in MODULES.values() for module in page]
FACES = {package: face for page in REFERENCE.values() for package, face in page}


def names_of(package: str) -> list[str]:
    module = import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(name for name in listed if not name.startswith("_"))
    own = [name for name, value in vars(module).items() if _is_from(value, package)]
    return sorted(name for name in own if not name.startswith("_"))


def _is_from(value: object, module: str) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module


@pytest.mark.parametrize("package", [*PACKAGES, *SINGLE])
def test_every_public_name_has_an_example(package):
    module = import_module(package)
    documented = [name for name in names_of(package) if callable(getattr(module, name))]
    assert documented
    without = [
        name for name in documented if ">>>" not in (inspect.getdoc(getattr(module, name)) or "")
    ]
    assert without == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    in_reference = {name for name, _ in public_names(FACES[package])}
    assert set(names_of(package)) <= in_reference


PUBLIC = [f"{package}.{name}" for package in [*PACKAGES, *SINGLE] for name in names_of(package)]
MAIN = {
    "trueup": "evaluate Evaluation evaluate_files CrossFit HoldOut Rolling bias_test "
    "bias_cost_interval field_calibration calibrated_log_loss",
    "trueup.comparison": "compare Comparison required_seeds variance_reduction metric_accuracy",
    "trueup.calibrators": "Guarded FieldOffsetCalibrator compare_calibrators load_calibrator",
    "trueup.resampling": "generalization_error nested_resampling",
    "trueup.monitoring": "ConsensusEstimator",
    "trueup_mlflow": "autolog log_evaluation log_predictions backfill compare_runs log_resampling "
    "LightningCallback",
    "trueup_mlflow.monitor": "init estimate realize",
    "trueup_optuna": "SeedObjective SeedRacePruner finals confirm select_best report_study",
    "trueup_spark": "evaluate",
}
PATHS = [f"{package}.{name}" for package, names in MAIN.items() for name in names.split()]


def found(path: str):
    package, _, name = path.rpartition(".")
    return getattr(import_module(package), name)


@pytest.mark.parametrize("path", PUBLIC)
def test_help_fits_a_terminal_of_100_columns(path):
    """What we write does; pydoc puts a signature on one line, however long it is."""
    value = found(path)
    if not callable(value) or path == "trueup.losses.FloatArray":
        return
    text = inspect.getdoc(value).splitlines()
    indent = len(" |  ") if inspect.isclass(value) else 4
    assert [line for line in text if len(line) + indent > 100] == []
    assert text[0].endswith("."), "the first line is a sentence"
    assert len(text) == 1 or text[1] == "", "a blank line follows it"


@pytest.mark.parametrize("path", PATHS)
def test_help_of_the_main_names_explains_every_argument(path):
    value = found(path)
    titles = re.findall(r"^([\w*, ]+?)(?: : .*)?$", inspect.getdoc(value), re.MULTILINE)
    words = {word.strip("*, ") for title in titles for word in title.split(",")}
    assert [name for name in inspect.signature(value).parameters if name not in words] == []
    assert {"Parameters", "Examples"} <= words or {"Attributes", "Examples"} <= words


def test_the_page_of_errors_lists_what_is_refused_with_its_mend():
    rows = refusals()
    assert len(rows) > 300
    assert "| n\\_bins must be " in "\n".join(rows)
