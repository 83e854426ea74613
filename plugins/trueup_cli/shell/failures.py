"""Expected failures as one line and exit code 2; anything else keeps its traceback."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from trueup.errors import TrueupError, TrueupWarning
from trueup_cli.shell.output import echo, shown

_EXTRA_OF = {
    "joblib": "sklearn",
    "matplotlib": "mlflow",
    "mlflow": "mlflow",
    "numba": "numba",
    "optuna": "optuna",
    "pandas": "files",
    "pyarrow": "files",
    "pyspark": "spark",
    "sklearn": "sklearn",
    "starlette": "ui",
    "torch": "torch",
    "tqdm": "cli",
    "uvicorn": "ui",
    "yaml": "cli",
}


class BadInput(click.ClickException):
    """Something is wrong with what was asked."""

    exit_code = 2


@contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn bad input, a missing file, a missing extra and a refusal by MLflow into ``BadInput``.

    Warnings of trueup become one line on standard error each.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", TrueupWarning)
        warnings.showwarning = _shown_in_one_line(warnings.showwarning)
        try:
            yield
        except ImportError as missing:  # also of ours, which names the extra
            package = _missing_package(missing)
            if package not in _EXTRA_OF:
                raise
            command = f"pip install 'trueup[{_EXTRA_OF[package]}]'"
            raise BadInput(f"{package} is not installed. Run: {command}") from missing
        except click.ClickException as failure:
            failure.message = shown(failure.message)  # type: ignore[misc]  # there is no other way
            raise
        except BrokenPipeError:
            raise
        except Exception as failure:
            if not _is_expected(failure):
                raise
            raise BadInput(shown(" ".join(str(failure).split()))) from failure


def _missing_package(missing: ImportError) -> str:
    cause = missing.__cause__ if isinstance(missing.__cause__, ImportError) else missing
    return (cause.name or "").partition(".")[0]


def _is_expected(failure: Exception) -> bool:
    # MLflow's classes are known by their names: importing them would cost a second
    mlflow_refused = any(kind.__module__ == "mlflow.exceptions" for kind in type(failure).__mro__)
    return mlflow_refused or isinstance(failure, (TrueupError, OSError))


def _shown_in_one_line(show: Callable[..., None]) -> Callable[..., None]:
    def showwarning(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, TrueupWarning):
            echo(f"warning: {message}", err=True)
        else:
            show(message, category, *where)

    return showwarning
