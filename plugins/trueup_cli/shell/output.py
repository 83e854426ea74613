"""What the command prints: no credentials, and nothing that a terminal would obey."""

from __future__ import annotations

import re

import click

from trueup.redact import without_credentials

# All control characters but tab and line feed, those that turn the direction of a line, and halves
# of a character, which stand for bytes of an argument that are no text and can't be printed.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def shown(text: str) -> str:
    """Return a text for a terminal; what the terminal would obey is spelled out."""
    return _OBEYED.sub(lambda found: repr(found[0])[1:-1], without_credentials(text))


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text on standard output, or on standard error."""
    click.echo(shown(text), err=err, nl=nl)
