"""Fitted state as named arrays in one ``.npz`` file that is read with pickle disallowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trueup.arrays import Arrays, from_npz, to_npz
from trueup.errors import CorruptFileError
from trueup.replace_file import replace_file

Restored = TypeVar("Restored")

_OF_FORGED_PARTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def finite(array: NDArray[Any], n_dims: int, dtype: str = "float64") -> NDArray[Any]:
    """Return a stored array of a type and a number of dimensions, finite; else a ValueError."""
    if array.dtype != dtype or array.ndim != n_dims or not np.isfinite(array).all():
        raise ValueError(f"{dtype} of {n_dims} dimensions expected, got {array.dtype}")
    return array


def require_width(*widths: int) -> None:
    """Refuse stored parts that take different numbers of encoded features."""
    if len(set(widths)) > 1:
        raise ValueError(f"one number of features expected, got {widths}")


def require_same_names(found: Arrays, expected: Arrays) -> None:
    """Refuse arrays that nothing would have written."""
    if found.keys() != expected.keys():
        raise ValueError(f"got the unknown arrays {sorted(found.keys() - expected.keys())[:5]}")


def nest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays under ``name/``."""
    return {f"{name}/{key}": value for key, value in arrays.items()}


def unnest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays that ``nest`` put under ``name/``; empty if there are none."""
    prefix = f"{name}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def text(value: Any) -> NDArray[np.uint8]:
    """Return a JSON value as an array of bytes."""
    return raw_text(json.dumps(value))


def untext(array: NDArray[Any]) -> Any:
    """Return the JSON value that ``text`` packed."""
    return json.loads(from_raw_text(array))


def raw_text(value: str) -> NDArray[np.uint8]:
    """Return a text as an array of bytes."""
    return np.frombuffer(value.encode(), dtype=np.uint8)


def from_raw_text(array: NDArray[Any]) -> str:
    """Return the text of ``raw_text``, or of the arrays of text that earlier releases wrote."""
    return array.tobytes().decode() if array.dtype == np.uint8 else str(array)


def write(path: str | Path, kind: str, arrays: Arrays) -> None:
    """Write the arrays to exactly ``path``, marked with the kind of object that they are."""
    replace_file(path, to_npz({"kind": np.array(kind), **arrays}))


def read(path: str | Path, kind: str, restore: Callable[[Arrays], Restored]) -> Restored:
    """Return what ``restore`` makes of the arrays that ``write`` wrote, else a CorruptFileError."""
    rule = f"path must be a saved {kind}"
    arrays = from_npz(Path(path).read_bytes(), rule)
    found = str(arrays.pop("kind", ""))
    if found != kind:
        raise CorruptFileError(
            rule, repr(found or "another file"), f"Give a file that {kind}.save wrote."
        )
    try:
        return restore(arrays)
    except _OF_FORGED_PARTS as e:
        raise CorruptFileError(
            rule,
            f"one whose parts don't fit together ({type(e).__name__}: {e})",
            "Save it again, or fetch another copy.",
        ) from None
