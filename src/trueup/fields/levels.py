"""The levels of a field: which one each row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arguments import raisable_limit
from trueup.errors import InvalidInputError, UnscorableInputError
from trueup.losses import FloatArray
from trueup.read.columns import column, is_missing

MISSING = "(missing)"
LIMIT_VARIABLE = "TRUEUP_MAX_LEVELS"
"""Environment variable: levels of a field up to which each of them is judged."""

_DEFAULT_LIMIT = 2_000_000  # a second and 200 MB for each half a million
_TEXT = {str, float, type(None)}


@dataclass(frozen=True)
class Levels:
    """Level of each row: ``codes``, shape (n,), are places in ``names``, all of which occur."""

    codes: NDArray[np.intp]
    names: tuple[str, ...]


def read_levels(field: Any, name: str, n_quantiles: int = 20) -> Levels:
    """Return the level of each row: categories as they are, fractional numbers by quantiles.

    A missing value is a level of its own.
    """
    if isinstance(n_quantiles, bool) or n_quantiles < 2:
        raise InvalidInputError("n_quantiles must be at least 2", repr(n_quantiles), "20 is usual.")
    known = getattr(field, "cat", field)  # a categorical column knows its codes
    if hasattr(known, "codes") and hasattr(known, "categories"):
        return occurring(np.asarray(known.codes), [str(v) for v in known.categories])
    values = column(field, name, may_miss=True)
    if values.dtype.kind in "OU" and set(map(type, as_list := values.tolist())) <= _TEXT:
        return _text_levels(as_list)
    if values.dtype.kind == "O":
        values = np.array([MISSING if is_missing(v) else str(v) for v in values.tolist()])
    if values.dtype.kind == "f" and (np.mod(values[np.isfinite(values)], 1.0) != 0.0).any():
        return _quantile_levels(values, n_quantiles)
    if _are_codes(values):
        return _dense(values)
    levels, codes = np.unique(values, return_inverse=True)
    return Levels(codes, tuple(_level_name(level) for level in levels.tolist()))


def require_few_levels(n_levels: int, name: str) -> None:
    """Refuse a field that has more levels than are judged one by one; it is unscorable then."""
    allowed = raisable_limit(LIMIT_VARIABLE, _DEFAULT_LIMIT, "levels")
    if n_levels > allowed:
        raise UnscorableInputError(
            f"{name} must have at most {allowed:,} levels to judge each of them",
            f"{n_levels:,}",
            f"Leave out a column of ids, group its levels, or set {LIMIT_VARIABLE} to a larger "
            "number.",
        )


def _text_levels(values: list[Any]) -> Levels:
    """Return the levels of text with missing values by a table, which costs less than a sort."""
    name_of = {value: MISSING if is_missing(value) else str(value) for value in set(values)}
    names = sorted(set(name_of.values()))
    code_of_name = {name: code for code, name in enumerate(names)}
    code_of = {value: code_of_name[name] for value, name in name_of.items()}
    return Levels(np.fromiter(map(code_of.__getitem__, values), np.intp, len(values)), tuple(names))


def _are_codes(values: NDArray[Any]) -> bool:
    """Tell whether values are integers that can be counted in a table, which saves a sort."""
    if values.dtype.kind not in "iu" or len(values) == 0:
        return False
    return bool(values.min() >= 0 and values.max() <= len(values))


def _dense(values: NDArray[Any]) -> Levels:
    present = np.bincount(values) > 0
    levels = np.flatnonzero(present)
    codes = values if len(levels) == len(present) else (np.cumsum(present) - 1)[values]
    return Levels(codes.astype(np.intp, copy=False), tuple(map(str, levels.tolist())))


def combine_fields(first: Any, second: Any) -> NDArray[np.str_]:
    """Return the pair of levels of each row as one field, for errors over pairs of fields.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Two fields, read as :func:`trueup.field_calibration_error` reads them.

    Examples
    --------
    >>> from trueup import combine_fields
    >>> combine_fields(["a", "a", "b"], [1, 2, 2]).tolist()
    ['a & 1', 'a & 2', 'b & 2']
    """
    one, two = read_levels(first, "first"), read_levels(second, "second")
    if len(one.codes) != len(two.codes):
        raise InvalidInputError(
            f"second must have as many rows as first ({len(one.codes)})",
            f"{len(two.codes)}",
            "Pass all rows.",
        )
    pair, codes = np.unique(one.codes * len(two.names) + two.codes, return_inverse=True)
    names = [
        f"{one.names[i]} & {two.names[j]}"
        for i, j in zip(*divmod(pair, len(two.names)), strict=True)
    ]
    return np.array(names)[codes]


def occurring(codes: NDArray[Any], categories: list[str]) -> Levels:
    """Return the categories that occur; the code of a missing value is -1."""
    names = [MISSING, *categories]
    codes = codes.astype(np.intp) + 1
    present = np.bincount(codes, minlength=len(names)) > 0
    levels = tuple(names[code] for code in np.flatnonzero(present))
    return Levels((np.cumsum(present) - 1)[codes], levels)


def _quantile_levels(values: FloatArray, n_quantiles: int) -> Levels:
    missing = np.isnan(values)
    inner = np.linspace(0.0, 1.0, n_quantiles + 1)[1:-1]
    edges = np.unique(np.quantile(values[~missing], inner, method="inverted_cdf"))
    ends = ["-inf", *(f"{edge:.6g}" for edge in edges), "inf"]
    names = [f"({low}, {high}]" for low, high in pairwise(ends)]
    codes = np.where(missing, -1, np.searchsorted(edges, values, side="left"))
    return occurring(codes, names)


def _level_name(level: object) -> str:
    if is_missing(level):
        return MISSING
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)
