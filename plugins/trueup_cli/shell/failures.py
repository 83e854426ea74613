"""Expected failures as one line and exit code 2, in the words of the command line.

Options stand in place of arguments; anything unexpected keeps its traceback.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import click

from trueup.errors import TrueupError, TrueupWarning
from trueup.extras import EXTRA_OF, install_command
from trueup_cli.shell.output import echo, shown

_PHRASES = {
    "labels=[negative, positive]": "--label NEGATIVE --label POSITIVE",
    "Pass [negative, positive]": "Pass --label NEGATIVE --label POSITIVE",
    "labels= with each class once": "--label once for each class",
    "or labels must name": "or --label must name",
    "Drop the argument": "Drop the option",
    "greater_is_better=False": "--lower-is-better",
    "calibrated=False": "--no-calibrated",
    'aggregate="pool"': "--aggregate pool",
    ", name another seed_key, or pass seed_key=None": " or name another seed_key",
}
_ASSIGNED = re.compile(r"\b(\w+)=(True\b|\w+(?=\(\))|)(?:\(\))?((?=[\w'\"\[{-]))?")
_INDEX = re.compile(r"at index (\d+)$").search
_LONG_NAME = re.compile(r"(?<!['\"])\b\w+_\w+\b(?!['\"])")  # no column, nor a word of the sentence


class SuggestingGroup(click.Group):
    """A group that says which command a mistyped one may have been; older releases don't."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        near = get_close_matches(name.lower().replace("_", "-"), known, n=1)
        if near and name not in known:
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


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
            if package not in EXTRA_OF:
                raise
            raise BadInput(
                f"{package} is not installed. Run: {install_command(package)}"
            ) from missing
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


@contextmanager
def in_options(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn refusals into bad input that names options; let warnings name options too.

    ``names`` is what the user wrote, by argument: ``{"y_true": "--target 'click'"}``. An argument
    that has the name of an option of the command needs no entry.
    """
    known = {**options_of_command(), **(names or {})}
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        ours = issubclass(category, TrueupWarning)
        before(translated(str(message), known) if ours else message, category, *where)

    warnings.showwarning = show  # type: ignore[assignment] # the place is passed on as it is
    try:
        yield
    except TrueupError as error:
        raise BadInput(refused(error, known)) from error
    finally:
        warnings.showwarning = before


def refused(error: TrueupError, names: Mapping[str, str]) -> str:
    """Return the message of an error with what the user wrote in place of its argument."""
    argument, text = error.argument or "", str(error)
    index = _INDEX(error.got or "")
    if index and "counted from 0" not in text:
        text += " An index counts from 0."
    if argument not in names:
        return translated(text, names)
    return names[argument] + translated(text.removeprefix(argument), names)


def translated(message: str, names: Mapping[str, str]) -> str:
    """Return a sentence with the options of arguments in their place."""

    def option(name: str) -> str:
        return names[name].partition(" ")[0]

    def assigned(found: re.Match[str]) -> str:
        name, value, more = found.groups()  # more: a value follows that stays as it is
        if name not in names:
            return found[0]
        bare = value in ("", "True") and more is None
        return option(name) if bare else f"{option(name)} {value}"

    for argument, words in _PHRASES.items():
        message = message.replace(argument, words)
    message = _ASSIGNED.sub(assigned, message)
    return _LONG_NAME.sub(
        lambda found: option(found[0]) if found[0] in names else found[0], message
    )


def options_of_command() -> dict[str, str]:
    """Return each option of the command that runs, by its argument."""
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    options = (param for param in context.command.params if isinstance(param, click.Option))
    return {option.name: option.opts[0] for option in options if option.name}
