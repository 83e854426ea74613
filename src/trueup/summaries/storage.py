"""Summaries as bytes: a versioned npz of plain arrays and one JSON header, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays, from_npz, to_npz
from trueup.errors import CorruptFileError, InvalidInputError
from trueup.splits import Split, parse_split

VERSION = 2
_LONGEST_SPLIT = 200


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the header and the arrays as bytes."""
    text = json.dumps({"format": "trueup summary", "version": VERSION, **header})
    return to_npz({"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays})


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of ``pack``; refuse other bytes and another version."""
    arrays = from_npz(data, "data must be the bytes of a summary")
    try:
        header = json.loads(arrays.pop("header").tobytes())
    except (KeyError, ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise corrupt("a header")
    if header.get("version") != VERSION:
        raise InvalidInputError(
            f"data must be a summary of version {VERSION}",
            f"version {header.get('version')!r}",
            "Compute it again with this release of trueup.",
        )
    return header, arrays


def corrupt(rule: str) -> CorruptFileError:
    """Return the error of bytes that lack something."""
    return CorruptFileError(
        f"data must be a summary with {rule}", "other bytes", "Pass what to_bytes() returned."
    )


def require_like(arrays: Arrays, pattern: Arrays) -> None:
    """Refuse arrays that are not of the names, types and shapes of a pattern, or below 0."""
    for name, like in pattern.items():
        found = arrays.get(name)
        if found is None or found.dtype != like.dtype or found.shape != like.shape:
            raise corrupt(f"{name} of {like.dtype} and shape {like.shape}")
        if found.dtype.kind == "i" and (found < 0).any():
            raise corrupt(f"{name} of counts")
    if arrays.keys() - pattern.keys():
        raise corrupt(f"the arrays {sorted(pattern)} and no others")


def split_of(text: Any) -> Split:
    """Return the split of a text; refuse any that is none of trueup's for summaries."""
    with suppress(InvalidInputError):
        if isinstance(text, str) and len(text) <= _LONGEST_SPLIT:
            split = parse_split(text)
            if split.n_groups is not None:
                return split
    raise corrupt("a split")


def fields_from_json(plain: Any) -> dict[str, list[str]]:
    """Return the levels of each field; refuse anything but lists of distinct texts."""
    if not isinstance(plain, dict) or not all(_are_levels(levels) for levels in plain.values()):
        raise corrupt("the levels of its fields")
    return plain


def _are_levels(found: Any) -> bool:
    return (
        isinstance(found, list)
        and all(isinstance(level, str) for level in found)
        and len(set(found)) == len(found)
    )
