"""Names of columns: present once, or refused with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueup.errors import InvalidInputError

_SHOWN = 20


def require_columns(wanted: Iterable[str], present: Sequence[str], source: object) -> None:
    """Refuse a table that lacks a column, or has one twice.

    Parameters
    ----------
    wanted : iterable of str
        Names that are asked for.
    present : sequence of str
        Names of the table, in its order.
    source : object
        What messages call the table.

    Raises
    ------
    InvalidInputError
        With the name that differs by blanks or case only, where there is one.

    Examples
    --------
    >>> require_columns(["Click"], ["click ", "p"], "val.csv")
    Traceback (most recent call last):
    trueup.errors.InvalidInputError: column 'Click' must be in val.csv; got click , p. \
Did you mean 'click '?
    """
    for name in wanted:
        count = present.count(name)
        if count > 1:
            raise InvalidInputError(
                f"column {name!r} must be in {source} once",
                f"it {count} times",
                "Rename one of them.",
            )
        if count == 0:
            shown = ", ".join(present[:_SHOWN])
            more = "" if len(present) <= _SHOWN else f" and {len(present)} in all"
            raise InvalidInputError(
                f"column {name!r} must be in {source}",
                f"{shown}{more}",
                f"{_suggestion(name, present)}",
            )


def _suggestion(name: str, present: Sequence[str]) -> str:
    alike = next((other for other in present if _bare(other) == _bare(name)), None)
    return "Check the spelling." if alike is None else f"Did you mean {alike!r}?"


def _bare(name: str) -> str:
    return "".join(name.split()).casefold()
