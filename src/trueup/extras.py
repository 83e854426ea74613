"""What is imported only when it is used: public names, and packages that an extra installs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
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


def hand_on(
    face: str, home: Mapping[str, str], within: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    ``home`` has the module of each name, in the package ``within`` where that is not ``face``.

    Examples
    --------
    >>> get, names = hand_on("trueup.comparison", {"compare": "compare"}, within="trueup.decide")
    >>> get("compare").__module__, names()
    ('trueup.decide.compare', ['compare'])
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {face!r} has no attribute {name!r}")
        with needed_by(name):
            value = getattr(import_module(f"{within or face}.{home[name]}"), name)
        setattr(sys.modules[face], name, value)  # found at once from now on
        return value

    return get, lambda: sorted(home)


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


def install_command(package: str) -> str:
    """Return the command that installs a package, by the extra that brings it."""
    if package in EXTRA_OF:
        return f"pip install 'trueup[{EXTRA_OF[package]}]'"
    return f"pip install {_INSTALLED_AS.get(package, package)}"
