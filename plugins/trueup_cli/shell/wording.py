"""Messages of the library in the words of the command line: options in place of arguments."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from trueup.errors import TrueupError, TrueupWarning
from trueup_cli.shell.failures import BadInput

_PHRASES = {
    "labels=[negative, positive]": "--label NEGATIVE --label POSITIVE",
    "Pass [negative, positive]": "Pass --label NEGATIVE --label POSITIVE",
    "labels= with each class once": "--label once for each class",
    "or labels must name": "or --label must name",
    "Drop the argument": "Drop the option",
}
_ASSIGNED = re.compile(r"\b(\w+)=(True\b|\w+(?=\(\))|)(?:\(\))?")
_LONG_NAME = re.compile(r"\b\w+_\w+\b")  # shorter ones may be words of the sentence


@contextmanager
def in_options(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn refusals into bad input that names options; let warnings name options too.

    Parameters
    ----------
    names : mapping of str to str
        What the user wrote, by argument: ``{"y_true": "--target 'click'"}``. An argument that has
        the name of an option of the command needs no entry.
    """
    known = {**_options_of_command(), **(names or {})}
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        ours = issubclass(category, TrueupWarning)
        shown(translated(str(message), known) if ours else message, category, *where)

    warnings.showwarning = show  # type: ignore[assignment] # the place is passed on as it is
    try:
        yield
    except TrueupError as error:
        raise BadInput(refused(error, known)) from error
    finally:
        warnings.showwarning = shown


def refused(error: TrueupError, names: Mapping[str, str]) -> str:
    """Return the message of an error with what the user wrote in place of its argument."""
    argument = error.argument or ""
    if argument not in names:
        return translated(str(error), names)
    return names[argument] + translated(str(error).removeprefix(argument), names)


def translated(message: str, names: Mapping[str, str]) -> str:
    """Return a sentence with the options of arguments in their place."""

    def option(name: str) -> str:
        return names[name].partition(" ")[0]

    def assigned(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in names:
            return found[0]
        return option(name) if value in ("", "True") else f"{option(name)} {value}"

    for argument, words in _PHRASES.items():
        message = message.replace(argument, words)
    message = _ASSIGNED.sub(assigned, message)
    return _LONG_NAME.sub(
        lambda found: option(found[0]) if found[0] in names else found[0], message
    )


def _options_of_command() -> dict[str, str]:
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    options = (param for param in context.command.params if isinstance(param, click.Option))
    return {option.name: option.opts[0] for option in options if option.name}
