"""The wheel and the source archive can be built, are well described, and install what they promise.

The versions of the packages that are installed here serve the new environments too: what is tested
is which of our files and entry points arrive, and what an extra's absence says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.engines import require_engine
from tests.release.extra import USES

import trueup

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "trueup",
    *(folder.name for folder in (ROOT / "plugins").glob("trueup_*") if folder.is_dir()),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder


def test_both_archives_are_described_as_the_index_wants_it(built):
    files = [str(file) for file in built.iterdir()]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_the_wheel_holds_every_package_and_nothing_else(built):
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    for package in PACKAGES:
        folder = ROOT / ("src" if package == "trueup" else "plugins") / package
        sources = {
            file.relative_to(folder.parent).as_posix()
            for file in folder.rglob("*")
            if file.is_file()
            and "__pycache__" not in file.parts
            and file.suffix not in (".so", ".pyd")
        }
        assert sources <= set(names), sources - set(names)


def test_the_tag_of_the_wheel_says_whether_it_holds_compiled_loops(built):
    require_engine("compiled")  # which was built here, so the wheel's must be
    (wheel,) = built.glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    assert any("/_kernels/loops." in name for name in zipfile.ZipFile(wheel).namelist())


def test_without_a_compiler_the_wheel_is_of_python_alone(tmp_path):
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path]
    run = subprocess.run(
        [*command, ROOT], capture_output=True, text=True, env=os.environ | {"CC": "false"}
    )
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "not compiled" in run.stdout + run.stderr


def test_the_source_archive_holds_the_tests(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    assert any(name.endswith("tests/architecture/test_imports.py") for name in names)


def test_the_version_comes_from_one_place(built):
    assert f"trueup-{trueup.__version__}" in next(built.glob("*.whl")).name


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """Return the interpreter of an environment with trueup and its two requirements alone."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    zipfile.ZipFile(next(built.glob("*.whl"))).extractall(site)
    for package in ("numpy", "scipy"):
        _link(package, site)
    return folder / "bin" / "python"


def _link(package: str, site: Path) -> None:
    found = Path(__import__(package).__file__).parents[1]
    for part in (package, f"{package}.libs"):
        if (found / part).exists():
            (site / part).symlink_to(found / part)


def test_evaluating_needs_numpy_and_scipy_alone(bare):
    code = "import trueup; print(trueup.evaluate([0, 1] * 50, [0.4, 0.7] * 50).n)"
    assert _run(bare, code).stdout == "100\n"


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from trueup.calibrators import PlattCalibrator", "sklearn"),
        ("from trueup.resampling import generalization_error", "sklearn"),
        ("import trueup_cli; trueup_cli.main()", "cli"),
        (
            f"import trueup; trueup.evaluate_files({str(ROOT / 'examples')!r} + "
            "'/data/flights_2013.parquet', y_true='y', y_proba='p')",
            "files",
        ),
    ],
)
def test_a_missing_extra_is_named_with_its_command(bare, code, extra):
    run = _run(bare, code)
    assert run.returncode != 0
    assert f"trueup[{extra}]" in run.stderr


def _run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_every_extra_is_tried_alone_in_ci():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(USES) == set(extras) - {"all", "dev"}
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f"extra: [{', '.join(USES)}]" in workflow


def test_what_is_tried_of_each_extra_works(tmp_path):
    script = str(ROOT / "tests" / "release" / "extra.py")
    command = [sys.executable, "-W", "ignore", script, *USES]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.endswith("trueup[ui] works\n"), run.stderr
