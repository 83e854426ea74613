"""Summaries as bytes: a versioned npz of plain arrays and one JSON header, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from trueup.errors import InvalidInputError
from trueup.splits import CrossFit, HoldOut, InSample, Split

Arrays = dict[str, NDArray[Any]]

VERSION = 1
_SPLITS: dict[str, type[Split]] = {cls.__name__: cls for cls in (CrossFit, HoldOut, InSample)}


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the header and the arrays as bytes."""
    text = json.dumps({"format": "trueup summary", "version": VERSION, **header})
    buffer = BytesIO()
    np.savez_compressed(buffer, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of ``pack``.

    Raises
    ------
    InvalidInputError
        If the bytes are no summary, or one of another version.
    """
    try:
        with np.load(BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes())
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise InvalidInputError(
            f"data must be the bytes of a summary; got {len(data)} others ({error}). "
            "Pass what to_bytes() returned."
        ) from None
    if header.get("version") != VERSION:
        raise InvalidInputError(
            f"data must be a summary of version {VERSION}; got version {header.get('version')!r}. "
            "Compute it again with this release of trueup."
        )
    return header, arrays


def split_to_json(split: Split) -> dict[str, Any]:
    """Return a split as plain values."""
    return {"name": type(split).__name__, "options": dict(vars(split))}


def split_from_json(plain: Mapping[str, Any]) -> Split:
    """Return the split of ``split_to_json``."""
    if plain.get("name") not in _SPLITS:
        raise InvalidInputError(
            f"data must name a split among {sorted(_SPLITS)}; got {plain.get('name')!r}. "
            "Pass what to_bytes() returned."
        )
    return _SPLITS[plain["name"]](**plain["options"])
