"""Values as messages show them: one line, however long they are."""

from __future__ import annotations

from typing import Any

_LONGEST = 80


def shown(value: Any) -> str:
    """Return the repr of a value, its middle left out where it is long.

    Examples
    --------
    >>> shown("a"), len(shown("a" * 10_000_000))
    ("'a'", 104)
    """
    text = repr(value[: 2 * _LONGEST] if isinstance(value, str) else value)
    if len(text) <= _LONGEST:
        return text
    size = f" ({len(value):,} characters)" if isinstance(value, str) else ""
    return f"{text[: _LONGEST - 1]}…{size}"
