"""Splits as text: what tags, stored predictions and the command line hold."""

from __future__ import annotations

import ast
import re

from trueup.errors import InvalidInputError
from trueup.splits import CrossFit, HoldOut, InSample, Rolling, Split

_SPLITS: dict[str, type[Split]] = {
    split.__name__: split for split in (CrossFit, HoldOut, InSample, Rolling)
}
_WORD = re.compile(r"(\(\s*(?:period\s*=\s*)?)(\d+\s*[A-Za-z]+|[a-z]+)(?=\s*\))")
"""A bare word as the only argument."""


def parse_split(text: str) -> Split:
    """Return the split that a text such as ``repr(split)`` names; refuse any other text.

    It is the name of a split, with Python literals as arguments where it takes any: ``"CrossFit"``,
    ``"HoldOut(0.2, salt=1)"``, ``"Rolling('month')"``. The quotes of a duration or month may be
    left out. Nothing is executed.

    Examples
    --------
    >>> parse_split("CrossFit(folds=10)")
    CrossFit(folds=10, salt=0)
    >>> parse_split(repr(InSample()))
    InSample()
    >>> parse_split("Rolling(7d)")
    Rolling(period='7d')
    """
    try:
        call = ast.parse(_WORD.sub(r"\1'\2'", text.strip()), mode="eval").body
        if isinstance(call, ast.Name):
            return _SPLITS[call.id]()
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            return _SPLITS[call.func.id](
                *(ast.literal_eval(argument) for argument in call.args),
                **{str(word.arg): ast.literal_eval(word.value) for word in call.keywords},
            )
    except InvalidInputError:
        raise
    except (SyntaxError, KeyError, TypeError, ValueError) as error:
        raise _not_a_split(text) from error
    raise _not_a_split(text)


def _not_a_split(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"split must be one of {', '.join(_SPLITS)} with its arguments",
        repr(text),
        "Write it as in Python, such as CrossFit(folds=5).",
    )
