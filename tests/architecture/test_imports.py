"""The direction of imports: trueup_cli -> plugins -> trueup, never back and never sideways."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = ["trueup_mlflow", "trueup_optuna", "trueup_spark"]
MAY_IMPORT = {
    "trueup": set(),
    **{plugin: {"trueup"} for plugin in PLUGINS},
    "trueup_ui": {"trueup", "trueup_mlflow", "trueup_optuna"},
    "trueup_cli": {"trueup", *PLUGINS, "trueup_ui"},
}
HEAVY = ("mlflow", "optuna", "torch", "pandas", "sklearn", "matplotlib", "pyspark")


def package_folder(package: str) -> Path:
    return ROOT / ("src" if package == "trueup" else "plugins") / package


def parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SystemError:  # Python 3.11 counts depth for all threads together: another one parsed
        return ast.parse(source)


def imported_packages(source: str) -> set[str]:
    found = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_only_what_lies_below_it(package):
    files = list(package_folder(package).rglob("*.py"))
    assert files
    for file in files:
        inside = {name for name in imported_packages(file.read_text()) if name in MAY_IMPORT}
        assert inside <= MAY_IMPORT[package] | {package}, file


def modules_loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_import_trueup_loads_no_heavy_package():
    assert modules_loaded_by("import trueup").isdisjoint(HEAVY)


def test_evaluating_loads_numpy_and_scipy_only():
    statement = "import trueup; trueup.evaluate([0, 1] * 50, [0.2, 0.7] * 50)"
    assert modules_loaded_by(statement).isdisjoint(HEAVY)


def test_context_of_mlflow_loads_the_standard_library_only():
    """MLflow loads it while ``import mlflow`` runs, beside its own abstract class."""
    code = """
import sys
from mlflow.tracking.context import abstract_context
for name in [name for name in sys.modules if name.startswith("trueup")]:
    del sys.modules[name]
before = set(sys.modules)
import trueup_mlflow.context
print(*(set(sys.modules) - before))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = {name.partition(".")[0] for name in run.stdout.split()}
    assert new - sys.stdlib_module_names == {"trueup_mlflow"}
