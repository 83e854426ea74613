"""How the arms of a comparison are called, where the user gave no names."""

from __future__ import annotations

import re

DEFAULT = ("candidate", "baseline")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


def names_of(candidate: str, baseline: str) -> tuple[str, str]:
    """Return the last quoted texts of two filters; the roles where these do not tell them apart.

    Examples
    --------
    >>> names_of("params.model = 'DeepFM'", "params.model = 'MLP'")
    ('DeepFM', 'MLP')
    >>> names_of("params.depth > '3'", "params.depth <= '3'")
    ('candidate', 'baseline')
    """
    found = [_last_quoted(text) for text in (candidate, baseline)]
    if not all(found) or found[0] == found[1]:
        return DEFAULT
    return found[0], found[1]


def _last_quoted(text: str) -> str:
    quoted = [single or double for single, double in _QUOTED.findall(text)]
    return quoted[-1] if quoted else ""
