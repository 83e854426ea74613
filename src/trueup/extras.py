"""What is imported only when it is used: public names, and packages that an extra installs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRA_OF = {
    "joblib": "sklearn",
    "lightgbm": "monitor",
    "matplotlib": "mlflow",
    "mlflow": "mlflow",
    "optuna": "optuna",
    "pandas": "files",
    "prometheus_client": "monitor",
    "pyarrow": "files",
    "pyspark": "spark",
    "sklearn": "sklearn",
    "starlette": "ui",
    "torch": "torch",
    "tqdm": "cli",
    "uvicorn": "ui",
    "yaml": "cli",
}
"""The extra of trueup that brings a package."""

_INSTALLED_AS = {"transformers": "'transformers[torch]'"}  # its Trainer needs accelerate too


_FOR_TYPES = re.compile(r"^    from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def hand_on(face: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    They are those that the face imports for types: ``from module import name as name``.

    Examples
    --------
    >>> import trueup.comparison
    >>> get, names = hand_on("trueup.comparison")
    >>> get("compare").__module__, "compare" in names()
    ('trueup.decide.compare', True)
    """
    own: Any = sys.modules[face]
    try:
        source = own.__spec__.loader.get_data(own.__file__).decode()  # of a zip file as well
    except (AttributeError, OSError, UnicodeDecodeError):  # a bundle of bytecode alone
        raise ImportError(
            f"{face} reads its names from its source, which is not beside {own.__file__}. "
            "Ship the .py files of trueup too.",
            name=face,
        ) from None
    modules = {name: module for module, name in _FOR_TYPES.findall(source)}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        with needed_by(name):
            value = getattr(import_module(modules[name]), name)
        setattr(own, name, value)  # found at once from now on
        return value

    return get, lambda: sorted(modules)


@contextmanager
def needed_by(who: str) -> Iterator[None]:
    """Raise an ImportError that says which package is missing, and what installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package.startswith("trueup"):  # a mistake of ours, which no command mends
            raise
        raise ImportError(
            f"{who} needs {package}. Run: {install_command(package)}", name=package
        ) from error


def require_installed(package: str, who: str) -> None:
    """Raise the ImportError of :func:`needed_by` for a missing package, which is not imported."""
    with needed_by(who):
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, of its build without the GPU too, or None."""
    from importlib.metadata import PackageNotFoundError, version  # most imports need none

    for name in (package, f"{package}-cpu"):  # XGBoost and TensorFlow have one
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def install_command(package: str) -> str:
    """Return the command that installs a package, by the extra that brings it."""
    if package in EXTRA_OF:
        return f"pip install 'trueup[{EXTRA_OF[package]}]'"
    return f"pip install {_INSTALLED_AS.get(package, package)}"
