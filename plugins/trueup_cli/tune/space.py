"""The train function and the space of ``trueup tune``, read from files."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from trueup.arguments import LARGEST_FLOAT, is_one_of, is_real
from trueup.errors import InvalidInputError
from trueup_cli.shell.scripts import load_attribute
from trueup_cli.tune.space_yaml import read_yaml

_KINDS = {"float": ("low", "high"), "int": ("low", "high"), "categorical": ("choices",)}
_DISTRIBUTIONS: dict[str, Callable[..., BaseDistribution]] = {
    "float": FloatDistribution,
    "int": IntDistribution,
    "categorical": CategoricalDistribution,
}
_OPTIONAL = {"float": {"log", "step"}, "int": {"log", "step"}, "categorical": set[str]()}


def load_train(target: str) -> Callable[..., Any]:
    """Return the function that ``script.py:name`` names."""
    file = target.rpartition(":")[0]
    path = Path(file)
    _check_script(target, file, path)
    train = load_attribute(target, "TRAIN")
    if not callable(train):
        raise InvalidInputError(
            "TRAIN must name a function", f"a {type(train).__name__}", "Name another."
        )
    return train  # type: ignore[no-any-return]


def _check_script(target: str, file: str, path: Path) -> None:
    if not file:
        raise InvalidInputError(
            "TRAIN must be script.py:function", repr(target), "Name the function behind a colon."
        )
    if not path.is_file():
        problem = "which is a folder" if path.is_dir() else f"which is not in {Path.cwd()}"
        raise InvalidInputError(
            "TRAIN must name a script that exists", f"{file!r}, {problem}", "Correct the path."
        )
    if path.suffix != ".py":
        raise InvalidInputError(
            "TRAIN must name a Python script", repr(file), "Give a file that ends in .py."
        )


def load_space(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the parameters of a space file, each with the keys that it needs and no others."""
    space = read_yaml(path)
    if not isinstance(space, dict) or not space:
        raise InvalidInputError(
            "space must be a mapping of parameter names",
            f"{type(space).__name__}",
            "Write lines such as: learning_rate: {type: float, low: 1.0e-4, high: 0.1, log: true}",
        )
    for name, parameter in space.items():
        if not isinstance(name, str):
            raise InvalidInputError(
                "names of parameters must be words", repr(name), "Quote it in the space file."
            )
        _check_parameter(name, parameter)
    return space


def _check_parameter(name: str, parameter: Any) -> None:
    kind = parameter.get("type") if isinstance(parameter, dict) else None
    if not is_one_of(kind, _KINDS):
        raise InvalidInputError(
            f"type of parameter {name!r} must be one of {sorted(_KINDS)}",
            repr(kind),
            "Give each parameter a type.",
        )
    given, needed = set(parameter) - {"type"}, set(_KINDS[kind])
    if not needed <= given <= needed | _OPTIONAL[kind]:
        raise InvalidInputError(
            f"keys of {kind} parameter {name!r} must be {sorted(needed)} and may be "
            f"{sorted(_OPTIONAL[kind])}",
            f"{sorted(given)}",
            "Correct the space file.",
        )
    for key in given - {"choices"}:
        _check_value(name, kind, key, parameter[key])
    if isinstance(parameter.get("choices"), list):
        _check_choices(name, parameter["choices"])
    _check_distribution(name, parameter)


def _check_value(name: str, kind: str, key: str, value: Any) -> None:
    """Refuse a bound, a step or a switch of another type, before anything is trained."""
    if key == "log":
        rule, is_right = "true or false", isinstance(value, bool)
    elif kind == "int":
        rule, is_right = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        rule, is_right = "a number", is_real(value) and abs(value) <= LARGEST_FLOAT
    if not is_right:
        raise InvalidInputError(
            f"{key} of parameter {name!r} must be {rule}", repr(value), "Correct the space file."
        )


def _check_choices(name: str, choices: list[Any]) -> None:
    for index, choice in enumerate(choices):
        if not isinstance(choice, bool | int | float | str | None):
            raise InvalidInputError(
                f"choices of parameter {name!r} must be numbers, words, true, false or null",
                f"{choice!r} at index {index}",
                "Name it by a word, and look it up in the script.",
            )


def _check_distribution(name: str, parameter: dict[str, Any]) -> None:
    try:
        _DISTRIBUTIONS[parameter["type"]](**_arguments(parameter))
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"parameter {name!r} must be a distribution that Optuna takes",
            repr(parameter),
            f"Correct the space file: {error}",
        ) from None


def distributions_of(space: dict[str, dict[str, Any]]) -> dict[str, BaseDistribution]:
    """Return the distribution of each parameter of a checked space."""
    return {name: _DISTRIBUTIONS[one["type"]](**_arguments(one)) for name, one in space.items()}


def _arguments(parameter: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parameter.items() if key != "type"}


def load_exceptions(names: Iterable[str]) -> tuple[type[Exception], ...]:
    """Return the exceptions of these names: built in, or with their module."""
    return tuple(_exception(name) for name in names)


def _exception(name: str) -> type[Exception]:
    home, _, short = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(home or "builtins"), short, None)
    except ImportError:
        found = None
    if not isinstance(found, type) or not issubclass(found, Exception):
        raise InvalidInputError(
            "--catch must name an exception",
            repr(name),
            "Write RuntimeError, or name its module too: torch.cuda.OutOfMemoryError.",
        )
    return found


def suggest(trial: Any, space: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Let the trial suggest a value for each parameter; refuse another space than the study's."""
    return {name: _suggest(trial, name, parameter) for name, parameter in space.items()}


def _suggest(trial: Any, name: str, parameter: dict[str, Any]) -> Any:
    try:
        return getattr(trial, f"suggest_{parameter['type']}")(name, **_arguments(parameter))
    except ValueError as error:
        raise InvalidInputError(
            "--space must keep the parameters that the study was begun with, their types and "
            "choices",
            f"{name!r}: {parameter!r}",
            f"Restore it, or begin another study with --study-name: {error}",
        ) from None


def with_space(
    train: Callable[..., Any], space: dict[str, dict[str, Any]] | None
) -> Callable[..., Any]:
    """Return ``train(trial, seed)`` for a ``train(params, seed)`` over a space file.

    Without a space it is the function itself. Either way, a function that was written for the other
    way is refused as soon as it shows.
    """
    _check_arguments(train, "trial" if space is None else "params")

    def train_trial(trial: Any, seed: int) -> Any:
        given = trial if space is None else _Params(suggest(trial, space))
        try:
            return train(given, seed)
        except (AttributeError, TypeError) as error:
            if space is None and _took_for_params(given, error):
                raise InvalidInputError(
                    "--space must be given where TRAIN is train(params, seed)",
                    f"none, and {_as_users_know_it(given, error)}",
                    "Add --space with a YAML of parameters.",
                ) from error
            if space is not None and _took_for_trial(given, error):
                raise InvalidInputError(
                    "--space must be left out where TRAIN calls the suggest methods of a trial",
                    f"one, and {error}",
                    "Leave it out, or take the values from a dict.",
                ) from error
            raise

    return train_trial


def _check_arguments(train: Callable[..., Any], first: str) -> None:
    try:
        signature = inspect.signature(train)
    except (TypeError, ValueError):  # compiled: the first training tells
        return
    try:
        signature.bind(None, 0)
    except TypeError:
        raise InvalidInputError(
            f"TRAIN must take ({first}, seed)", str(signature), "Give it both arguments."
        ) from None


class _UnknownParameterError(InvalidInputError, KeyError):
    """A parameter was read that the space does not hold; ``train`` may catch it as a KeyError."""

    __str__ = InvalidInputError.__str__


class _Params(dict[str, Any]):
    """The parameters of one training, which say what they are where another one is read."""

    def __missing__(self, name: Any) -> Any:
        raise _UnknownParameterError(
            "TRAIN must read parameters that --space names",
            f"{name!r}, and it names {', '.join(self)}",
            "Correct the name in one of the two.",
        )


def _took_for_params(trial: Any, error: Exception) -> bool:
    """Say whether a dict method or the syntax of a mapping was tried on a trial."""
    if isinstance(error, AttributeError):
        return hasattr(dict, error.name or "") and "Trial" in type(error.obj).__name__
    return type(trial).__name__ in str(error)


def _as_users_know_it(trial: Any, error: Exception) -> str:
    """Return the message with the class that users know for the one that stands for it."""
    return str(error).replace(type(trial).__name__, "Trial")


def _took_for_trial(params: dict[str, Any], error: Exception) -> bool:
    return (
        isinstance(error, AttributeError)
        and error.obj is params
        and (error.name or "").startswith("suggest_")
    )
